package daemon

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// topic is a stream that one test has for itself, and the registry that leads to it.
type topic struct {
	name     string
	registry string
}

func newTopic(t *testing.T) topic {
	t.Helper()
	top := topic{name: pgtest.NewName("publisher"), registry: filepath.Join(t.TempDir(), "registry.yaml")}
	text := fmt.Sprintf("contracts:\n  - type: order_created\n    aggregate: order\n    topic: %s\n    schema: {type: "+
		"object, required: [total]}\n", top.name)
	if err := os.WriteFile(top.registry, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return top
}

// stream makes the stream on a server, until the test ends.
func (top topic) stream(t *testing.T, url string, options ...nats.Option) jetstream.Stream {
	t.Helper()
	conn, err := nats.Connect(url, append([]nats.Option{nats.Timeout(eventually.Patience)}, options...)...)
	if err != nil {
		t.Fatalf("%v\nIs NATS running? `make services` starts it.", err)
	}
	t.Cleanup(conn.Close)
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	stream, err := js.CreateStream(ctx, jetstream.StreamConfig{Name: top.name, Subjects: []string{top.name}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		_ = js.DeleteStream(ctx, top.name) // its server may be gone
	})
	return stream
}

// messages counts what has arrived.
func messages(t *testing.T, stream jetstream.Stream) int {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	info, err := stream.Info(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.State.Msgs)
}

// insertOrders writes events as any program in any language may: the id is a UUID of version 7.
const insertOrders = `
INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
SELECT id, 'order_created', 'order', $1 || n, json_build_object('version', 1, 'eventId', id,
       'occurredAt', to_char(now() AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'), 'data', 
       json_build_object('total', n))
  FROM (SELECT overlay(overlay(pg_catalog.gen_random_uuid()::text PLACING '0199' FROM 1) PLACING '7' 
       FROM 15)::uuid AS id, n
          FROM generate_series(1, $2) n) e`

// natsServer is a nats-server of the test's own, on an address that stays.
type natsServer struct {
	*server.Server
	t             *testing.T
	folder        string
	configuration string        // the text of a configuration file, besides what all have
	login         []nats.Option // of the test itself
}

// newNATS prepares a server and does not start it.
func newNATS(t *testing.T) *natsServer {
	t.Helper()
	folder := t.TempDir()
	prepared, err := server.NewNATS(folder, "-c", filepath.Join(folder, "nats.conf"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(prepared.Close)
	return &natsServer{Server: prepared, t: t, folder: folder}
}

func (s *natsServer) url() string { return "nats://" + s.Address }

// start starts the server and waits until it answers.
func (s *natsServer) start() {
	s.t.Helper()
	if err := os.WriteFile(filepath.Join(s.folder, "nats.conf"), []byte(s.configuration), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := s.Start(s.t.Context()); err != nil {
		s.t.Fatal(err)
	}
	err := eventually.Works(s.t.Context(), func() error {
		conn, err := nats.Connect(s.url(), append([]nats.Option{nats.Timeout(eventually.Patience)}, s.login...)...)
		if err == nil {
			conn.Close()
		}
		return err
	})
	if err != nil {
		s.t.Fatal(err)
	}
}

// freeze makes the server take connections and bytes, and answer nothing.
func (s *natsServer) freeze() {
	s.t.Helper()
	if err := s.Signal(syscall.SIGSTOP); err != nil {
		s.t.Fatal(err)
	}
}

// thaw lets a frozen server go on where it was.
func (s *natsServer) thaw() {
	s.t.Helper()
	if err := s.Signal(syscall.SIGCONT); err != nil {
		s.t.Fatal(err)
	}
}

// unread is how many bytes lie in front of a frozen server, which has not read them.
func (s *natsServer) unread() (bytes int) {
	s.t.Helper()
	text, err := os.ReadFile("/proc/net/tcp")
	if err != nil {
		s.t.Fatal(err)
	}
	_, port, _ := net.SplitHostPort(s.Address)
	number, _ := strconv.Atoi(port)
	for line := range strings.Lines(string(text)) {
		columns := strings.Fields(line) // number, local, remote, state, transmit:receive
		if len(columns) < 5 || !strings.HasSuffix(columns[1], fmt.Sprintf(":%04X", number)) {
			continue
		}
		_, received, _ := strings.Cut(columns[4], ":")
		queue, _ := strconv.ParseInt(received, 16, 64)
		bytes = max(bytes, int(queue))
	}
	return bytes
}

// kill ends the server as a crash would, also a frozen one.
func (s *natsServer) kill() { _ = s.End(os.Kill) }
