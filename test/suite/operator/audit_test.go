package operator

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/operator/audit"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// audited is an outbox whose events go to a broker, but for those that are dropped.
type audited struct {
	*env
	topic     string
	event     *outbox.ContractFor[order]
	publisher publish.Publisher
	stop      func() // the relay

	mutex sync.Mutex
	drops map[outbox.ID]bool
	sent  map[outbox.ID]*publish.Message
}

// auditResult is what the command prints for programs.
type auditResult struct {
	Report   audit.Report    `json:"report"`
	Findings []audit.Finding `json:"findings"`
}

func newAudited(t *testing.T, e *env, publisher publish.Publisher, topic string) *audited {
	t.Helper()
	a := &audited{
		env: e, topic: topic, publisher: publisher, drops: map[outbox.ID]bool{}, sent: map[outbox.ID]*publish.Message{},
		event: outbox.Define[order](outbox.Contract{Type: "order_audited", Aggregate: "order", Topic: topic}),
	}
	e.answers(func(message *publish.Message) error {
		a.mutex.Lock()
		dropped := a.drops[message.ID]
		a.sent[message.ID] = message
		a.mutex.Unlock()
		if dropped {
			return nil
		}
		return publisher.Publish(context.WithoutCancel(t.Context()), message)
	})
	a.stop = e.start(t, "main", a.event)
	e.awaitLanes(t, "main", 64)
	return a
}

// publishes emits an event and waits until it is published, or dropped by whoever should have sent it.
func (a *audited) publishes(t *testing.T, dropped bool) outbox.ID {
	t.Helper()
	event := a.event.New("1", order{N: 1})
	event.ID = outbox.NewID()
	a.mutex.Lock()
	a.drops[event.ID] = dropped
	a.mutex.Unlock()
	a.write(t, event)
	a.awaitState(t, event.ID, 6)
	return event.ID
}

// message is what was sent for an event.
func (a *audited) message(id outbox.ID) *publish.Message {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	return a.sent[id]
}

// stranger is a message of an event that is not in the table.
func (a *audited) stranger(t *testing.T) outbox.ID {
	t.Helper()
	id := outbox.NewID()
	if err := a.publisher.Publish(t.Context(), &publish.Message{
		ID: id, Topic: a.topic, Key: "default/order/9", Body: []byte("{}"), CreatedAt: time.Now(),
		Attributes: map[string]string{"event_id": id.String(), "event_type": "order_audited"},
	}); err != nil {
		t.Fatal(err)
	}
	return id
}

// wantFindings reads what the command printed, and holds it to what it must have found.
func wantFindings(t *testing.T, stdout string, want ...string) auditResult {
	t.Helper()
	var result auditResult
	if err := json.Unmarshal([]byte(stdout), &result); err != nil {
		t.Fatalf("%v\n%s", err, stdout)
	}
	var got []string
	for _, finding := range result.Findings {
		got = append(got, finding.Kind+" "+finding.Event.String())
	}
	slices.Sort(got)
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("found %q, want %q\n%s", got, want, stdout)
	}
	return result
}

// TestAuditFindsEachFault at NATS: nothing where all is well; and then each of four faults by its name, with the exit
// code that says so.
func TestAuditFindsEachFault(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		a := atNATS(t, e)
		for range 20 {
			a.publishes(t, false)
		}
		audits := func(code int, want ...string) auditResult {
			t.Helper()
			stdout, _ := e.want(t, e.role, code, "", "audit", "--slack", "0s", "-o", "json")
			return wantFindings(t, stdout, want...)
		}
		if clean := audits(0); clean.Report.Matched != 20 || clean.Report.Messages != 20 {
			t.Errorf("a clean run: %+v", clean.Report)
		}
		e.want(t, e.role, 0, `20 numbers were drawn: 20 are there, 0 pruned, 0 nobody has`, "audit", "sequence", "--strict")

		e.want(t, e.role, 0, `"matched": 20`, "audit", "--topic", a.topic, "--topic", a.topic, "-o", "json", "--slack", "0s")

		lost := a.publishes(t, true)
		audits(5, "missing "+lost.String())
		e.want(t, e.role, 5, line("missing", lost.String(), "21", "order_audited", a.topic, `\S+ ago`), "audit", "--slack",
			"0s")
		if a.redeliver(t, lost); audits(0).Report.Copies != 1 {
			t.Error("a copy that was asked for is no finding, and ends the loss")
		}

		stranger := a.stranger(t)
		audits(5, "unknown "+stranger.String())
		a.forget(t, stranger)

		twice := a.publishes(t, false)
		a.sendAgain(t, twice)
		audits(0, "twice "+twice.String())
		e.want(t, e.role, 5, "twice", "audit", "--slack", "0s", "--strict")

		deleted := a.publishes(t, false)
		e.Exec(t, "DELETE FROM {schema}.outbox_events WHERE id = $1", deleted)
		found := audits(5, "twice "+twice.String(), "unknown "+deleted.String())
		if why := found.Findings[slices.IndexFunc(found.Findings, func(f audit.Finding) bool {
			return f.Kind == audit.Unknown
		})].Why; !strings.Contains(why, "was deleted") {
			t.Errorf("of a row that was deleted it says %q", why)
		}
		e.want(t, e.role, 0, line("gap", "23", "rolled back, or the events were deleted"), "audit", "sequence")
		e.want(t, e.role, 5, `"gaps":1`, "audit", "sequence", "--strict", "-o", "ndjson")

		e.Exec(t, "UPDATE {schema}.outbox_events SET published_at = now() - interval '2 hours' WHERE id = $1", lost)
		e.want(t, "", 0, "published=1", "prune", "--published", "1h", "--pause", "0s")
		if found := audits(5, "twice "+twice.String(), "unknown "+deleted.String()); found.Report.Pruned != 1 {
			t.Errorf("what retention took is not unknown: %+v", found.Report)
		}

		// Nothing explains that a stream without limits is empty.
		if err := a.stream.Purge(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.want(t, e.role, 5, `"missing":21,`, "audit", "--slack", "0s", "-o", "ndjson")

		e.Exec(t, "SELECT setval('{schema}.outbox_events_seq_seq', 7)")
		e.want(t, e.role, 5, `the sequence is behind: numbers up to 22 are in use`, "audit", "sequence")
	})
}

// atNATS is an outbox whose events go to a stream of their own.
func atNATS(t *testing.T, e *env) *auditedStream {
	t.Helper()
	conn, err := natsjetstream.Connect(services.NATS())
	if err != nil {
		t.Fatal(err)
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		t.Fatal(err)
	}
	topic := "audit-" + strings.ToLower(rand.Text()[:12])
	stream, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: topic, Subjects: []string{topic}, Duplicates: 100 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := js.DeleteStream(context.Background(), topic); err != nil {
			t.Error(err)
		}
	})
	e.environment = []string{"POSTHASTE_NATS_URL=" + services.NATS()}
	return &auditedStream{audited: newAudited(t, e, publisher, topic), stream: stream, js: js}
}

type auditedStream struct {
	*audited
	js     jetstream.JetStream
	stream jetstream.Stream
}

// messages is how many the stream has.
func (a *auditedStream) messages(t *testing.T) uint64 {
	t.Helper()
	info, err := a.stream.Info(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return info.State.LastSeq
}

// sendAgain sends what was sent, until the stream takes it for another one.
func (a *auditedStream) sendAgain(t *testing.T, id outbox.ID) {
	t.Helper()
	before := a.messages(t)
	eventually.True(t, "a copy is in the stream", func() bool {
		return a.publisher.Publish(t.Context(), a.message(id)) == nil && a.messages(t) > before
	})
}

// forget takes the newest message out of the stream.
func (a *auditedStream) forget(t *testing.T, _ outbox.ID) {
	t.Helper()
	if err := a.stream.DeleteMsg(t.Context(), a.messages(t)); err != nil {
		t.Fatal(err)
	}
}

// redeliver asks for a copy of an event, and waits until it is there.
func (a *auditedStream) redeliver(t *testing.T, id outbox.ID) {
	t.Helper()
	a.mutex.Lock()
	delete(a.drops, id)
	a.mutex.Unlock()
	a.env.want(t, "", 0, "", "replay", "start", id.String(), "--reason", "it was lost")
	eventually.True(t, "the copy is sent", func() bool {
		return a.Count(t, "SELECT count(*) FROM {schema}.outbox_requests WHERE delivered_at IS NOT NULL") == 1
	})
}

// TestAuditReceivesFromPubSub: a subscription of its own sees what is published while it is there.
func TestAuditReceivesFromPubSub(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		server, client := pubsubtest.Start(t, "audited")
		publisher, err := googlepubsub.NewPublisher(client, googlepubsub.PublisherConfig{Timeout: eventually.Patience})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = publisher.Close() })
		e.environment = []string{"POSTHASTE_PUBSUB_PROJECT=p", "POSTHASTE_PUBSUB_ENDPOINT=" + server.Addr()}
		a := newAudited(t, e, publisher, "audited")
		// Where the machine takes longer than that for what is planted, it has twice as long.
		for length := 4 * time.Second; !a.auditedFor(t, client, length) && length < eventually.Patience; length *= 2 {
			t.Logf("%s were too short", length)
		}
		if left := subscriptions(t, client); left != 0 {
			t.Errorf("%d subscriptions are left", left)
		}
	})
}

// auditedFor plants what it must find, and tells whether it did so in time.
func (a *audited) auditedFor(t *testing.T, client *pubsub.Client, length time.Duration) bool {
	t.Helper()
	ended := a.begin(t, a.role, "audit", "--for", length.String(), "--quiet", "2s", "--slack", "0s", "-o", "json")
	eventually.True(t, "it has a subscription", func() bool { return subscriptions(t, client) == 1 })
	var dropped []outbox.ID
	twice := a.publishes(t, false)
	if err := a.publisher.Publish(t.Context(), a.message(twice)); err != nil {
		t.Fatal(err)
	}
	stranger := a.stranger(t)
	for range 10 {
		a.publishes(t, false)
		dropped = append(dropped, a.publishes(t, true))
	}
	got := eventually.Receive(t, "the command has ended", ended)
	var result auditResult
	if err := json.Unmarshal([]byte(got.stdout), &result); err != nil {
		t.Fatalf("%v\n%s%s", err, got.stdout, got.stderr)
	}
	want := []string{"twice " + twice.String(), "unknown " + stranger.String()}
	for _, id := range dropped {
		if a.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE id = $1 AND published_at BETWEEN $2 AND $3", id,
			result.Report.Held, result.Report.To) == 1 {
			want = append(want, "missing "+id.String())
		}
	}
	if len(want) < 3+len(dropped)/2 {
		return false
	}
	if wantFindings(t, got.stdout, want...); got.code != 5 {
		t.Errorf("exit code %d\n%s", got.code, got.stderr)
	}
	return true
}

// TestASubscriptionToEachTopicOnce: one that is named twice has one, and nothing is left of it.
func TestASubscriptionToEachTopicOnce(t *testing.T) {
	t.Parallel()
	server, client := pubsubtest.Start(t, "audited")
	made, err := pubsubbroker.Subscribe(t.Context(), []string{
		"POSTHASTE_PUBSUB_PROJECT=p", "POSTHASTE_PUBSUB_ENDPOINT=" + server.Addr(),
	}, false, "audited", "audited")
	if err != nil {
		t.Fatal(err)
	}
	if count := subscriptions(t, client); count != 1 {
		t.Errorf("%d subscriptions were made", count)
	}
	if err := made.Close(); err != nil {
		t.Error(err)
	}
	if left := subscriptions(t, client); left != 0 {
		t.Errorf("%d subscriptions are left", left)
	}
}

func subscriptions(t *testing.T, client *pubsub.Client) (count int) {
	t.Helper()
	all := client.SubscriptionAdminClient.ListSubscriptions(t.Context(),
		&pubsubpb.ListSubscriptionsRequest{Project: "projects/p"})
	for _, err := range all.All() {
		if err != nil {
			t.Fatal(err)
		}
		count++
	}
	return count
}

// TestAuditSaysWhatIsMissingToBegin: topics that nobody knows, streams that are not there or keep nothing.
func TestAuditSaysWhatIsMissingToBegin(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		says := func(code int, says string, args ...string) {
			t.Helper()
			got, _, stderr := e.call(t, e.role, append([]string{"audit"}, args...)...)
			if got != code || !strings.Contains(stderr, says) {
				t.Errorf("%q: exit code %d, want %d and %q\n%s", args, got, code, says, stderr)
			}
		}
		says(2, "set POSTHASTE_NATS_URL")
		e.environment = []string{"POSTHASTE_NATS_URL=" + services.NATS()}
		says(3, "name them with --topic")
		says(3, "use --all-types", "--topic", "orders")
		says(3, "nats stream add", "--topic", "nothing-of-this-name", "--all-types")
		says(2, "--until", "--until", "yesterday")
		says(2, "--since", "--since", "-1h")
		says(2, "is before --since", "--topic", "orders", "--all-types", "--until", "2026-01-31T00:00:00Z")
		conn, err := natsjetstream.Connect(services.NATS())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
		if err != nil {
			t.Fatal(err)
		}
		queue := fmt.Sprintf("audit-queue-%s", strings.ToLower(rand.Text()[:12]))
		if _, err := js.CreateStream(t.Context(), jetstream.StreamConfig{
			Name: queue, Subjects: []string{queue}, Retention: jetstream.WorkQueuePolicy,
		}); err != nil {
			t.Fatal(err)
		}
		defer func() { _ = js.DeleteStream(context.Background(), queue) }()
		says(1, "keeps messages only until they are consumed", "--topic", queue, "--all-types")
	})
}
