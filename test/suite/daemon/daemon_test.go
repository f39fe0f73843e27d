package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

func TestDelivers(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		top := newTopic(t)
		stream := top.stream(t, services.NATS())
		s := settings{database: db.URL, schema: db.Schema, nats: services.NATS(), registry: top.registry}
		p := start(t, s)
		p.untilReady(http.StatusOK, "[+] database: schema")
		db.Exec(t, insertOrders, "a-", 3)
		p.until("the events have arrived", func() bool { return messages(t, stream) == 3 })
		p.until("the events are settled", func() bool {
			return db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE state = 6`) == 3
		})
		first, err := stream.GetMsg(t.Context(), 1)
		if err != nil {
			t.Fatal(err)
		}
		if db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE id = $1::uuid AND payload_json::text = $2`,
			first.Header.Get("event_id"), string(first.Data)) != 1 {
			t.Errorf("what arrived is not what was written: %v %s", first.Header, first.Data)
		}
		p.public(strings.Join(first.Header.Values("event_id"), "") + string(first.Data))
		wantLog(t, p, top, first.Header.Get("event_id"))
		health := exec.CommandContext(t.Context(), binary, "health", "--http-listen="+p.address)
		for _, line := range s.environ() {
			if !strings.HasPrefix(line, "POSTHASTE_HTTP_LISTEN=") {
				health.Env = append(health.Env, line)
			}
		}
		if text, err := health.CombinedOutput(); err != nil || !strings.Contains(string(text), "[+] broker: nats") {
			t.Errorf("health: %v\n%s", err, text)
		}
		p.signal(syscall.SIGINT)
		if code := p.ends(); code != 0 {
			t.Errorf("exit code %d", code)
		}
		if db.Count(t, `SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL`) != 0 {
			t.Error("it has kept lanes")
		}
	})
}

// wantLog looks at the log: records of one line, the hash of the registry, a line for the published event.
func wantLog(t *testing.T, p *publisher, top topic, event string) {
	t.Helper()
	text, err := os.ReadFile(top.registry)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(text)
	var hashed, published bool
	for line := range strings.Lines(p.Said()) {
		var record map[string]any
		if err := json.Unmarshal([]byte(line), &record); err != nil {
			t.Errorf("not a record: %s", line)
		}
		hashed = hashed || record["registry_sha256"] == hex.EncodeToString(sum[:])
		published = published || record["event_id"] == event && record["outcome"] == "published" &&
			record["event_type"] == "order_created" &&
			record["aggregate_type"] == "order" && record["attempt"] != nil && record["redelivered"] == false
	}
	if !hashed || !published {
		t.Errorf("the log names the registry's hash: %v, the event: %v", hashed, published)
	}
}

// A stop in the middle of the work settles what is in flight and gives the lanes back at once.
func TestDrains(t *testing.T) {
	t.Parallel()
	db, top := pgtest.New(t, pgtest.Servers()[0]), newTopic(t)
	stream := top.stream(t, services.NATS())
	const events = 20_000
	db.Exec(t, insertOrders, "a-", events)
	p := start(t, settings{
		database: db.URL, schema: db.Schema, nats: services.NATS(), registry: top.registry,
		args: []string{"--relay-concurrency=4", "--relay-drain=2m", "--log-sample-successes=1000"},
	})
	p.until("it is in the middle of it", func() bool { return messages(t, stream) > 100 })
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	settled := db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE state = 6`)
	if arrived := messages(t, stream); arrived != settled || settled == events {
		t.Errorf("%d events have arrived, %d of %d are settled", arrived, settled, events)
	}
	if db.Count(t, `SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL`) != 0 {
		t.Error("it has kept lanes")
	}
	if got := db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE attempt_count > 0`); got != 0 {
		t.Errorf("%d events were charged", got)
	}
	if lines := strings.Count(p.Said(), `"outcome":"published"`); lines > settled/1000+1 {
		t.Errorf("%d lines of %d published events", lines, settled)
	}
}

// atTheBroker starts a publisher whose events are on their way to a broker that does not answer.
func atTheBroker(t *testing.T, db *pgtest.DB, top topic, broker *natsServer) *publisher {
	t.Helper()
	p := start(t, settings{
		database: db.URL, schema: db.Schema, nats: broker.url(), registry: top.registry,
		args: []string{"--relay-lease=1h", "--relay-publish-deadline=20m", "--relay-drain=20m"}, // which no test waits for
	})
	p.untilReady(http.StatusOK, "64 lanes")
	broker.freeze()
	db.Exec(t, insertOrders, "a-", 5)
	// One event has more than 100 bytes; the client's pings have 6.
	p.until("the events are before the broker", func() bool { return broker.unread() > 5*100 })
	return p
}

// With a broker that does not answer a drain takes its time; a second signal does not wait for it.
func TestTheSecondSignalCuts(t *testing.T) {
	t.Parallel()
	db, top, broker := pgtest.New(t, pgtest.Servers()[0]), newTopic(t), newNATS(t)
	broker.start()
	top.stream(t, broker.url())
	p := atTheBroker(t, db, top, broker)
	p.signal(syscall.SIGTERM)
	p.untilReady(http.StatusServiceUnavailable, "[-] relay: draining")
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 1 || !strings.Contains(p.Said(), "a second signal") {
		t.Errorf("exit code %d", code)
	}
}

// K13: a platform that sends two signals at once, with nothing in flight, gets what it asked for: a drain.
func TestTwoSignalsWithNothingInFlight(t *testing.T) {
	t.Parallel()
	db, top := pgtest.New(t, pgtest.Servers()[0]), newTopic(t)
	p := start(t, settings{database: db.URL, schema: db.Schema, nats: services.NATS(), registry: top.registry})
	p.untilReady(http.StatusOK, "64 lanes")
	p.signal(syscall.SIGTERM)
	p.signal(syscall.SIGINT) // two of one kind may become one
	if code := p.ends(); code != 0 || strings.Contains(p.Said(), "a second signal") {
		t.Errorf("exit code %d: %s", code, p.Said())
	}
	if db.Count(t, `SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL`) != 0 {
		t.Error("it has kept lanes")
	}
}

// A drain waits for what is at the broker, and writes down what became of it.
func TestADrainWaitsForTheBroker(t *testing.T) {
	t.Parallel()
	db, top, broker := pgtest.New(t, pgtest.Servers()[0]), newTopic(t), newNATS(t)
	broker.start()
	stream := top.stream(t, broker.url())
	p := atTheBroker(t, db, top, broker)
	p.signal(syscall.SIGTERM)
	p.untilReady(http.StatusServiceUnavailable, "[-] relay: draining")
	broker.thaw()
	if code := p.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	if settled, arrived := db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE state = 6`),
		messages(t, stream); settled != 5 || arrived != 5 {
		t.Errorf("%d events are settled, %d have arrived", settled, arrived)
	}
}

// A drain ends when nothing is at the broker any more, also for a bad reason: here the client gives up a connection on
// which nobody has answered its pings. What became of the events is not known then, so they stay to be sent again.
func TestADrainEndsWithTheConnection(t *testing.T) {
	t.Parallel()
	db, top, broker := pgtest.New(t, pgtest.Servers()[0]), newTopic(t), newNATS(t)
	broker.start()
	top.stream(t, broker.url())
	p := atTheBroker(t, db, top, broker)
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 0 || !strings.Contains(p.Said(), "disconnected from NATS") {
		t.Errorf("exit code %d", code)
	}
	if kept := db.Count(t,
		`SELECT count(*) FROM {schema}.outbox_events WHERE state = 0 AND attempt_count = 0`); kept != 5 {
		t.Errorf("%d events stay ready and not charged", kept)
	}
	if db.Count(t, `SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL`) != 0 {
		t.Error("it has kept lanes")
	}
}

// The publisher outlives its database, and says so: it is alive and not ready.
func TestTheDatabaseGoesAway(t *testing.T) {
	t.Parallel()
	database, err := cluster.New(t.Context(), cluster.Config{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := database.Close(); err != nil {
			t.Error(err)
		}
	})
	if err := schema.Outbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", database.URL()),
		schema.Options{Schema: "public"}); err != nil {
		t.Fatal(err)
	}
	top := newTopic(t)
	stream := top.stream(t, services.NATS())
	p := start(t, settings{database: database.URL(), schema: "public", nats: services.NATS(), registry: top.registry})
	p.untilReady(http.StatusOK, "64 lanes")
	for round := 1; round <= 2; round++ {
		if err := database.Stop(t.Context(), cluster.Immediate); err != nil {
			t.Fatal(err)
		}
		p.untilReady(http.StatusServiceUnavailable, "[-] database: ")
		if err := database.Start(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.untilReady(http.StatusOK, "[+] database: schema")
		if err := database.Exec(t.Context(), strings.ReplaceAll(insertOrders, "{schema}", "public"), "a-", 1); err != nil {
			t.Fatal(err)
		}
		p.until("the event has arrived", func() bool { return messages(t, stream) == round })
	}
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// An outage at the start is an outage, for the broker and for the database; so is one later.
func TestTheBrokerIsAwayAtTheStart(t *testing.T) {
	t.Parallel()
	db, top, broker := pgtest.New(t, pgtest.Servers()[0]), newTopic(t), newNATS(t)
	p := start(t, settings{database: db.URL, schema: db.Schema, nats: broker.url(), registry: top.registry})
	p.untilReady(http.StatusServiceUnavailable, "[-] broker: nats: not connected")
	db.Exec(t, insertOrders, "a-", 2)
	p.untilReady(http.StatusServiceUnavailable, "[-] topics: paused: "+top.name+" (topic: not connected to a server)")
	broker.start()
	stream := top.stream(t, broker.url())
	p.until("the events have arrived", func() bool { return messages(t, stream) == 2 })
	p.untilReady(http.StatusOK, "[+] topics: none is paused")
	broker.kill()
	p.untilReady(http.StatusServiceUnavailable, "[-] broker: nats: not connected")
	broker.start()
	p.untilReady(http.StatusOK, "[+] broker: nats")
	if got := db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE attempt_count > 0`); got != 0 {
		t.Errorf("%d events were charged", got)
	}
}

// Whatever is wrong is told at once, and nothing runs.
func TestABadConfiguration(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	command := exec.CommandContext(ctx, binary, "run", "--relay-poll=20s", "--log-level=loud", "--database-url="+canary)
	command.Env = []string{
		"POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL=nats://relay:" + canary + "@nats.example.com",
		"POSTHASTE_REGISTRY_FILE=/no/file",
		"POSTHASTE_DATABASE_LISTEN_URL=postgres://relay:" + canary + "@db.example.com/shop?sslmode=require",
		"POSTHASTE_RELAY_BACH=50",
	}
	text, _ := command.CombinedOutput() // how it ended is looked at below
	if command.ProcessState.ExitCode() != 2 || strings.Contains(string(text), canary) {
		t.Errorf("exit code %d:\n%s", command.ProcessState.ExitCode(), text)
	}
	for _, want := range []string{
		"--database-url: database.url: a secret is not given as a flag",
		"db.example.com is not on this machine: add sslmode=verify-full",
		"nats.example.com is not on this machine: write tls://", "relay.poll: 20s", "did you mean POSTHASTE_RELAY_BATCH?",
		"log.level: ", "/no/file",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("not told: %s\nin:\n%s", want, text)
		}
	}
}

// A database without an outbox is refused with what to do.
func TestThereIsNoOutbox(t *testing.T) {
	t.Parallel()
	p := start(t, settings{
		database: services.Postgres18(), schema: "nobody_has_this", nats: services.NATS(), registry: newTopic(t).registry,
	})
	if code := p.ends(); code != 1 || !strings.Contains(p.Said(), "outboxctl migrate up") {
		t.Errorf("exit code %d", code)
	}
}

// Whoever names the outbox that he means is not led to another one.
func TestTheWrongOutbox(t *testing.T) {
	t.Parallel()
	db, top := pgtest.New(t, pgtest.Servers()[0]), newTopic(t)
	var installation string
	if err := db.Pool.QueryRow(t.Context(),
		`SELECT installation::text FROM `+db.Schema+`.outbox_meta`).Scan(&installation); err != nil {
		t.Fatal(err)
	}
	s := settings{
		database: db.URL, schema: db.Schema, nats: services.NATS(), registry: top.registry,
		args: []string{"--database-installation=" + installation},
	}
	start(t, s).untilReady(http.StatusOK, "installation "+installation)
	s.args = []string{"--database-installation=00000000-0000-4000-8000-000000000000"}
	p := start(t, s)
	if code := p.ends(); code != 1 || !strings.Contains(p.Said(), "its installation is "+installation) {
		t.Errorf("exit code %d", code)
	}
}
