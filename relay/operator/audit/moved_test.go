package audit_test

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator/audit"
)

// moved is an outbox of which a type moves from orders to orders-v2.
type moved struct {
	*env
	newest string // the relay that started last
}

func withMoved(t *testing.T, test func(t *testing.T, e *moved)) {
	t.Helper()
	onEachServer(t, func(t *testing.T, e *env) { test(t, &moved{env: e}) })
}

// started adds a relay that has been there for so long.
func (e *moved) started(t *testing.T, ago time.Duration, topics map[string]string) {
	t.Helper()
	e.newest = e.relay(t, topics)
	e.exec(t, "UPDATE {schema}.outbox_relays SET started_at = clock_timestamp() - $2::interval WHERE id = $1", e.newest,
		ago)
}

// ends has it end, as relays do: what it knew goes.
func (e *moved) ends(t *testing.T) {
	t.Helper()
	e.exec(t, "UPDATE {schema}.outbox_relays SET ended_at = clock_timestamp() WHERE id = $1", e.newest)
	e.exec(t, "DELETE FROM {schema}.outbox_known WHERE relay = $1", e.newest)
}

// uses writes down that events were published to a topic, as relays do that survey.
func (e *moved) uses(t *testing.T, topic string, ago time.Duration) {
	t.Helper()
	e.exec(t, `INSERT INTO {schema}.outbox_minutes (minute, topic, relay, arrived, published, rejected, terminal,
			topic_fault, unknown, died, latencies)
		VALUES (date_trunc('minute', now() - $2::interval), $1, gen_random_uuid(), 1, 1, 0, 0, 0, 0, 0,
			array_fill(0, ARRAY[16]))`, topic, ago)
}

// sentTo is an event that was published so long ago, and the message that a topic has of it.
func (e *moved) sentTo(t *testing.T, topic, kind string, ago time.Duration) audit.Message {
	t.Helper()
	m := e.published(t, kind)
	m.Topic = topic
	e.exec(t, "UPDATE {schema}.outbox_events SET published_at = clock_timestamp() - $2::interval WHERE id = $1",
		m.ID.String(), ago)
	return m
}

type findings map[outbox.ID]audit.Finding

// audits compares these topics, and returns each finding whole.
func (e *moved) audits(t *testing.T, broker audit.Broker, topics ...string) (report audit.Report, found findings) {
	t.Helper()
	found = findings{}
	report, err := audit.Run(t.Context(), e.viewer, broker, audit.Config{
		Schema: e.schema, Topics: topics, Slack: -1,
		Found: func(f audit.Finding) error { found[*f.Event] = f; return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	return report, found
}

func (e *moved) wantTopics(t *testing.T, named, former []string) {
	t.Helper()
	got, err := audit.Topics(t.Context(), e.viewer, e.schema)
	if err != nil || !slices.Equal(got, named) {
		t.Errorf("the topics are %q, want %q (%v)", got, named, err)
	}
	got, err = audit.FormerTopics(t.Context(), e.viewer, e.schema, time.Hour)
	if err != nil || !slices.Equal(got, former) {
		t.Errorf("those of before are %q, want %q (%v)", got, former, err)
	}
}

// TestWhileATypeMoves relays know two topics for it: an event may be in either, and one that is in none is lost.
func TestWhileATypeMoves(t *testing.T) {
	t.Parallel()
	withMoved(t, func(t *testing.T, e *moved) {
		e.started(t, 2*time.Hour, map[string]string{"order_created": "orders", "order_billed": "bills"})
		e.started(t, time.Hour, map[string]string{"order_created": "orders-v2", "order_billed": "bills"})
		e.wantTopics(t, []string{"bills", "orders", "orders-v2"}, nil)
		both := []string{"orders", "orders-v2"}
		old, young := e.sentTo(t, "orders", "order_created", 0), e.sentTo(t, "orders-v2", "order_created", 0)
		sent := []audit.Message{old, young}
		report, found := e.audits(t, &held{messages: sent}, both...)
		if len(found) != 0 || !report.Clean() || report.Matched != 2 {
			t.Errorf("found %v, %+v", found, report)
		}
		lost := e.sentTo(t, "", "order_created", 0)
		report, found = e.audits(t, &held{messages: sent}, both...)
		if f := found[lost.ID]; len(found) != 1 || f.Kind != audit.Missing || f.Topic != "orders-v2" ||
			!strings.Contains(f.Why, "orders-v2, orders") || report.Unsure != 0 {
			t.Errorf("found %v, %+v", found, report)
		}
		// One topic alone cannot tell.
		for topic, there := range map[string]audit.Message{"orders": old, "orders-v2": young} {
			report, found = e.audits(t, &held{messages: []audit.Message{there}}, topic)
			if len(found) != 0 || report.Matched != 1 || report.OtherTopics != 2 {
				t.Errorf("%s: found %v, %+v", topic, found, report)
			}
		}
		// Nor can a topic that does not show it any more.
		report, found = e.audits(t, &held{messages: sent, since: map[string]time.Time{
			"orders": time.Now().Add(time.Minute),
		}}, both...)
		if len(found) != 0 || report.Beyond != 1 {
			t.Errorf("found %v, %+v", found, report)
		}
		// A copy in either ends the loss.
		lost.Copy = true
		for _, lost.Topic = range both {
			report, found = e.audits(t, &held{messages: append(sent, lost)}, both...)
			if len(found) != 0 || report.Matched != 3 {
				t.Errorf("%s: found %v, %+v", lost.Topic, found, report)
			}
		}
	})
}

// TestWhenATypeHasMoved no relay names its old topic any more: minutes do, and what is in it is not lost.
func TestWhenATypeHasMoved(t *testing.T) {
	t.Parallel()
	withMoved(t, func(t *testing.T, e *moved) {
		e.started(t, 2*time.Hour, map[string]string{"order_created": "orders"})
		e.uses(t, "orders", 30*time.Minute)
		e.uses(t, "orders-v2", 10*time.Minute)
		e.uses(t, "bills", 10*time.Minute)
		e.uses(t, "long-ago", 2*time.Hour)
		e.ends(t)
		e.started(t, 20*time.Minute, map[string]string{"order_created": "orders-v2", "order_billed": "bills"})
		e.wantTopics(t, []string{"bills", "orders-v2"}, []string{"orders"})
		all := []string{"bills", "orders", "orders-v2"}

		old := e.sentTo(t, "orders", "order_created", 30*time.Minute)
		lost := e.sentTo(t, "", "order_created", 30*time.Minute)
		young := e.sentTo(t, "orders-v2", "order_created", 0)
		report, found := e.audits(t, &held{messages: []audit.Message{old, young}}, all...)
		if f := found[lost.ID]; len(found) != 1 || f.Kind != audit.Missing || !strings.Contains(f.Why, "has ended since") ||
			report.Matched != 2 || report.Unsure != 1 {
			t.Errorf("found %v, %+v", found, report)
		}
		// Who does not read the old topic is told which one it may be.
		report, found = e.audits(t, &held{messages: []audit.Message{young}}, "bills", "orders-v2")
		if f := found[old.ID]; len(found) != 2 || f.Kind != audit.Missing || !strings.Contains(f.Why, ": long-ago, orders") ||
			report.Missing != 2 || report.Unsure != 2 {
			t.Errorf("found %v, %+v", found, report)
		}
		// The old topic does not show all of that time any more: of the types that it shows, nobody knows.
		billed := e.sentTo(t, "", "order_billed", 30*time.Minute)
		report, found = e.audits(t, &held{messages: []audit.Message{old, young}, since: map[string]time.Time{
			"orders": time.Now().Add(-25 * time.Minute),
		}}, all...)
		if len(found) != 1 || found[billed.ID].Kind != audit.Missing || report.Beyond != 1 {
			t.Errorf("found %v, %+v", found, report)
		}
	})
}

// TestALossBeforeADeploy is found: that relays have started since excuses nothing.
func TestALossBeforeADeploy(t *testing.T) {
	t.Parallel()
	withMoved(t, func(t *testing.T, e *moved) {
		before := e.sentTo(t, "", "order_created", time.Hour)
		e.started(t, 30*time.Minute, map[string]string{"order_created": "orders"})
		after := e.sentTo(t, "", "order_created", 10*time.Minute)
		report, found := e.audits(t, &held{}, "orders")
		if found[before.ID].Why == "" || found[after.ID].Why != "" || report.Missing != 2 || report.Unsure != 1 {
			t.Errorf("found %v, %+v", found, report)
		}
		// A relay that has ended since may have known another topic as well.
		e.started(t, 20*time.Minute, nil)
		e.ends(t)
		report, found = e.audits(t, &held{}, "orders")
		if found[after.ID].Why == "" || report.Missing != 2 || report.Unsure != 2 {
			t.Errorf("found %v, %+v", found, report)
		}
	})
}

// opened is a broker before whose first answer something happens.
type opened struct {
	held

	first func()
}

func (o *opened) Open(ctx context.Context, from time.Time) (audit.Extent, error) {
	o.first()
	return o.held.Open(ctx, from)
}

// TestATypeMovesMeanwhile to a topic that is not read, and its old relay ends: what went there is not called missing.
func TestATypeMovesMeanwhile(t *testing.T) {
	t.Parallel()
	withMoved(t, func(t *testing.T, e *moved) {
		e.started(t, time.Hour, map[string]string{"order_created": "orders", "order_billed": "bills"})
		lost := e.sentTo(t, "", "order_billed", 0)
		report, found := e.audits(t, &opened{first: func() {
			e.ends(t)
			e.started(t, 0, map[string]string{"order_created": "orders-v2"})
			e.sentTo(t, "orders-v2", "order_created", 0)
		}}, "orders", "bills")
		if len(found) != 1 || found[lost.ID].Kind != audit.Missing || report.OtherTopics != 1 {
			t.Errorf("found %v, %+v", found, report)
		}
	})
}
