package daemon

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"

	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/jackc/pgx/v5"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

const project = "shop"

// emulator is a Pub/Sub of the test's own, on an address that stays.
type emulator struct {
	t       *testing.T
	folder  string
	address string
	server  *pubsubemulator.Server
}

func newEmulator(t *testing.T, topics ...string) *emulator {
	t.Helper()
	e := &emulator{t: t, folder: t.TempDir(), address: "127.0.0.1:0"}
	e.start()
	e.address = e.server.Addr()
	t.Cleanup(e.stop)
	e.create(topics...)
	return e
}

// create makes topics.
func (e *emulator) create(topics ...string) {
	e.t.Helper()
	conn, err := grpc.NewClient(e.address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		e.t.Fatal(err)
	}
	defer func() { _ = conn.Close() }()
	for _, topic := range topics {
		if _, err := pubsubpb.NewPublisherClient(conn).CreateTopic(e.t.Context(),
			&pubsubpb.Topic{Name: topicPath(topic)}); err != nil {
			e.t.Fatal(err)
		}
	}
}

func topicPath(topic string) string { return "projects/" + project + "/topics/" + topic }

func (e *emulator) start() {
	e.t.Helper()
	var err error
	if e.server, err = pubsubemulator.Start(pubsubemulator.Config{Addr: e.address, Dir: e.folder}); err != nil {
		e.t.Fatal(err)
	}
}

func (e *emulator) stop() {
	if e.server == nil {
		return
	}
	if err := e.server.Close(); err != nil {
		e.t.Error(err)
	}
	e.server = nil
}

func (e *emulator) messages() []pubsubemulator.Message {
	e.t.Helper()
	messages, err := pubsubemulator.ReadMessages(e.folder)
	if err != nil {
		e.t.Fatal(err)
	}
	return messages
}

// The broker goes away in the middle of the work, twice. Everything arrives, and nothing is blamed on an event.
func TestPubSubIsRestarted(t *testing.T) {
	t.Parallel()
	db, top := pgtest.New(t, pgtest.Servers()[0]), newTopic(t)
	broker := newEmulator(t, top.name)
	const events, rounds = 3_000, 2
	db.Exec(t, insertOrders, "a-", events)
	p := start(t, settings{
		database: db.URL, schema: db.Schema, registry: top.registry,
		args: []string{"--relay-concurrency=16", "--log-sample-successes=1000"},
		more: []string{
			"POSTHASTE_BROKER=pubsub", "POSTHASTE_PUBSUB_PROJECT=" + project, "POSTHASTE_PUBSUB_ENDPOINT=" + broker.address,
		},
	})
	for round := range rounds {
		p.until("it is in the middle of it", func() bool { return len(broker.messages()) > events/4*(round+1) })
		broker.stop()
		db.Exec(t, insertOrders, fmt.Sprintf("b-%d-", round), 100)
		p.untilReady(http.StatusServiceUnavailable, "[-] broker: pubsub: not connected")
		broker.start()
	}
	p.until("all events are settled", func() bool {
		return db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE state <> 6`) == 0
	})
	p.untilReady(http.StatusOK, "[+] broker: pubsub")
	arrived := map[string]bool{}
	for _, message := range broker.messages() {
		arrived[message.Attributes["event_id"]] = true
		p.public(fmt.Sprint(message.Attributes))
	}
	if want := events + rounds*100; len(arrived) != want {
		t.Errorf("%d of %d events have arrived", len(arrived), want)
	}
	if got := db.Count(t, `SELECT count(*) FROM {schema}.outbox_events WHERE attempt_count > 0`); got != 0 {
		t.Errorf("%d events were charged", got)
	}
	p.signal(syscall.SIGTERM)
	if code := p.ends(); code != 0 {
		t.Errorf("exit code %d", code)
	}
}

// The marketplace's variables, all of them, drive the marketplace's publisher: its contracts are compiled in.
func TestTheMarketplace(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, pgtest.Servers()[0])
	domain := pgtest.NewName("domain")
	broker := newEmulator(t, domain)
	s := settings{
		program: marketplaceBinary, database: db.URL, schema: db.Schema,
		more: []string{
			"POSTHASTE_PUBSUB_PROJECT=" + project, "POSTHASTE_PUBSUB_ENDPOINT=" + broker.address,
			"PACKFINDERZ_OUTBOX_PUBLISH_BATCH_SIZE=60", "PACKFINDERZ_OUTBOX_PUBLISH_POLL_MS=250",
			"PACKFINDERZ_OUTBOX_MAX_ATTEMPTS=25",
			"PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS=168", "PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL=168h",
			"PACKFINDERZ_PUBSUB_DOMAIN_TOPIC=" + domain, "PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION=orders-worker",
		},
	}
	wantShown(t, s, map[string]string{
		"relay.batch":        "60 environment PACKFINDERZ_OUTBOX_PUBLISH_BATCH_SIZE",
		"relay.poll":         "250ms environment PACKFINDERZ_OUTBOX_PUBLISH_POLL_MS",
		"relay.max_attempts": "25 environment PACKFINDERZ_OUTBOX_MAX_ATTEMPTS",
		"inbox.ttl":          "168h environment PACKFINDERZ_EVENTING_IDEMPOTENCY_TTL",
		"inbox.subscription": "orders-worker environment PACKFINDERZ_PUBSUB_DOMAIN_SUBSCRIPTION",
		"topic.default":      domain + " environment PACKFINDERZ_PUBSUB_DOMAIN_TOPIC",
	})
	bare := s
	bare.more = s.more[:2]
	wantShown(t, bare, map[string]string{
		"relay.batch": "50 default of the program", "topic.default": "pf-domain-events default of the program",
		"inbox.ttl": "720h default",
	})
	hours := s
	hours.more = slices.Concat(s.more[:5], []string{"PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS=48"})
	wantShown(t, hours, map[string]string{"inbox.ttl": "48h environment PACKFINDERZ_OUTBOX_IDEMPOTENCY_TTL_HOURS"})

	p := start(t, s)
	p.untilReady(http.StatusOK, "[+] broker: pubsub")
	err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		_, err := outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema),
			events.OrderCreated.New("order-1", events.OrderCreatedV1{
				OrderID: "order-1", CheckoutGroupID: "group-1", BuyerStoreID: "store-1", VendorStoreID: "store-2", Currency: "EUR",
				TotalCents: 100,
				Lines:      []events.LineItem{{LineItemID: "line-1", ProductID: "product-1", Quantity: 1, UnitPriceCents: 100}},
			}))
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	p.until("the event has arrived", func() bool { return len(broker.messages()) == 1 })
	if got := broker.messages()[0]; got.Topic != topicPath(domain) || got.Attributes["event_type"] != "order_created" {
		t.Errorf("what arrived is %+v", got)
	}
}

// wantShown looks at some lines of `config show`, each with the value and where it came from.
func wantShown(t *testing.T, s settings, want map[string]string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), s.program, "config", "show")
	command.Env, command.Stderr = s.environ(), os.Stderr
	text, err := command.Output()
	if err != nil {
		t.Fatal(err)
	}
	shown := map[string]string{}
	for line := range strings.Lines(string(text)) {
		if words := strings.Fields(line); len(words) > 0 {
			shown[words[0]] = strings.Join(words[1:], " ")
		}
	}
	for key, line := range want {
		if shown[key] != line {
			t.Errorf("%s: want %q, got %q", key, line, shown[key])
		}
	}
	if strings.Contains(string(text), canary) {
		t.Errorf("the secret is shown:\n%s", text)
	}
}
