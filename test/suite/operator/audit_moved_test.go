package operator

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// TestAuditFollowsATypeThatMoves to another topic: what went to the old one is not missing, neither while a relay still
// sends there nor when it has left; and what is in neither is.
func TestAuditFollowsATypeThatMoves(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		a := atNATS(t, e)
		audits := func(code int, want ...string) (result auditResult, notes string) {
			t.Helper()
			stdout, stderr := e.want(t, e.role, code, "", "audit", "--slack", "0s", "-o", "json")
			return wantFindings(t, stdout, want...), stderr
		}
		for range 5 {
			a.publishes(t, false)
		}
		lost := a.publishes(t, true)
		a.moves(t)
		result, _ := audits(5, "missing "+lost.String())
		if result.Report.Matched != 5 || len(result.Report.Topics) != 2 {
			t.Errorf("while both are there: %+v", result.Report)
		}

		a.stop()
		e.awaitLanes(t, "next", 64)
		for range 5 {
			a.publishes(t, false)
		}
		// As relays write it down when a minute is over, of a topic that is there and of one that nobody has any more.
		e.Exec(t, `INSERT INTO {schema}.outbox_minutes (minute, topic, relay, arrived, published, rejected, terminal,
				topic_fault, unknown, died, latencies)
			SELECT date_trunc('minute', now()), u.topic, gen_random_uuid(), 5, 5, 0, 0, 0, 0, 0, array_fill(0, ARRAY[16])
			  FROM unnest($1::text[]) u(topic)`, []string{a.topic, a.topic + "-gone"})
		result, notes := audits(5, "missing "+lost.String())
		if !strings.Contains(notes, a.topic+"-gone before, and no stream shows it") || result.Report.Matched != 10 ||
			result.Report.Unsure != 1 || !strings.Contains(result.Findings[0].Why, a.topic+"-gone") {
			t.Errorf("%+v\n%s", result, notes)
		}
		e.want(t, e.role, 5, line("unsure", "1", "of the missing may .*"), "audit", "--slack", "0s")

		// A topic of before is named beside one of now: alone it says nothing.
		e.want(t, e.role, 3, "", "audit", "--slack", "0s", "--topic", a.topic)
		e.want(t, e.role, 5, `"missing": 1,`, "audit", "--slack", "0s", "-o", "json", "--topic", a.topic, "--topic",
			a.topic+"-v2")
		e.want(t, e.role, 5, `"missing": 6,`, "audit", "--slack", "0s", "-o", "json", "--topic", a.topic+"-v2")
	})
}

// moves starts a relay that sends the type to a topic with a stream of its own, beside the one that is there.
func (a *auditedStream) moves(t *testing.T) {
	t.Helper()
	topic := a.topic + "-v2"
	if _, err := a.js.CreateStream(t.Context(), jetstream.StreamConfig{
		Name: topic, Subjects: []string{topic}, Duplicates: 100 * time.Millisecond,
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := a.js.DeleteStream(context.Background(), topic); err != nil {
			t.Error(err)
		}
	})
	a.start(t, "next", outbox.Define[order](outbox.Contract{Type: "order_audited", Aggregate: "order", Topic: topic}))
	eventually.True(t, "the relay is there", func() bool {
		return a.Count(t, "SELECT count(*) FROM {schema}.outbox_known WHERE topic = $1", topic) == 1
	})
}
