package deploy

import (
	"context"
	"fmt"
	"maps"
	"os"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// newDatabase makes an empty database on the newest PostgreSQL and returns its URL.
func newDatabase(t *testing.T) string {
	t.Helper()
	server, name := services.Postgres18(), pgtest.NewName("deploy")
	admin := pgtest.OpenSQL(t, "pgx", server)
	if _, err := admin.ExecContext(t.Context(), "CREATE DATABASE "+name); err != nil {
		t.Fatalf("%v\nIs PostgreSQL running? `make services` starts it.", err)
	}
	t.Cleanup(func() {
		if _, err := admin.ExecContext(context.Background(), "DROP DATABASE "+name+" WITH (FORCE)"); err != nil {
			t.Error(err)
		}
	})
	return regexp.MustCompile(`/\w+\?`).ReplaceAllString(server, "/"+name+"?")
}

// newStream starts a NATS server with the stream of compose.yaml.
func newStream(t *testing.T) (url string, stream jetstream.Stream) {
	t.Helper()
	server, err := server.NewNATS(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	if err := server.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	conn, err := nats.Connect("nats://"+server.Address, nats.Timeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	name, subjects := streams(t)
	if stream, err = js.CreateStream(t.Context(), jetstream.StreamConfig{Name: name, Subjects: subjects}); err != nil {
		t.Fatal(err)
	}
	return "nats://" + server.Address, stream
}

var emitPattern = regexp.MustCompile(`psql .* -c "(SELECT .*)"`)

// What compose.yaml promises in its first lines, with its own settings and the image's own programs, as a user that is
// not root on a root that cannot be written. Only the servers' addresses are this machine's.
func TestTheQuickStart(t *testing.T) {
	t.Parallel()
	services := theCompose(t).Services
	database := newDatabase(t)
	natsURL, stream := newStream(t)
	address, err := server.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}

	settings := maps.Clone(services["publisher"].Environment)
	settings["POSTHASTE_DATABASE_URL"], settings["POSTHASTE_NATS_URL"] = database, natsURL
	settings["POSTHASTE_HTTP_LISTEN"] = address[strings.LastIndex(address, ":"):]

	migrate := services["migrate"]
	command := migrate.Entrypoint
	for _, word := range migrate.Command.([]any) {
		command = append(command, fmt.Sprint(word))
	}
	if text, err := inContainer(t.Context(), t, map[string]string{"POSTHASTE_DATABASE_URL": database},
		command...).CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", command, err, text)
	}

	log := &server.Output{}
	run := inContainer(context.Background(), t, settings, "outbox-publisher")
	run.Stderr = log
	if err := run.Start(); err != nil {
		t.Fatal(err)
	}
	exited := make(chan error, 1)
	go func() { exited <- run.Wait() }()
	t.Cleanup(func() { _ = run.Process.Kill() })

	healthy := services["publisher"].Healthcheck.Test[1:]
	eventually.True(t, "healthy", func() bool {
		return inContainer(t.Context(), t, settings, healthy...).Run() == nil
	}, log.String)
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", run.Process.Pid))
	if err != nil || !strings.Contains(string(status), "\nUid:\t65532\t65532\t65532\t65532\n") ||
		!strings.Contains(string(status), "\nCapEff:\t0000000000000000\n") {
		t.Errorf("it runs as somebody else (%v):\n%s", err, status)
	}

	statement := emitPattern.FindStringSubmatch(read(t, "compose.yaml"))
	if statement == nil {
		t.Fatal("compose.yaml shows no emit")
	}
	if _, err := pgtest.OpenSQL(t, "pgx", database).ExecContext(t.Context(),
		strings.ReplaceAll(statement[1], `\"`, `"`)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the event has arrived", func() bool {
		info, err := stream.Info(t.Context())
		return err == nil && info.State.Msgs == 1
	}, log.String)

	if err := run.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-exited:
		if err != nil {
			t.Errorf("it ended with %v\n%s", err, log)
		}
	case <-time.After(eventually.Patience):
		t.Errorf("it did not end\n%s", log)
	}
	var held int
	query := `SELECT count(*) FROM outbox_lanes WHERE owner IS NOT NULL`
	if err := pgtest.OpenSQL(t, "pgx", database).QueryRowContext(t.Context(), query).Scan(&held); err != nil || held != 0 {
		t.Errorf("it has kept %d lanes (%v)", held, err)
	}
}
