package operator

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
)

// status looks, and says what the reasons are, by their codes.
func (e *env) status(t *testing.T) (*operator.Status, string) {
	t.Helper()
	status, err := e.viewer.Status(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, reason := range status.Reasons {
		if reason.Text == "" || reason.Do == "" {
			t.Errorf("%s says too little: %+v", reason.Code, reason)
		}
		codes = append(codes, reason.Code)
	}
	return status, string(status.Health) + " " + strings.Join(codes, " ")
}

func (e *env) awaitStatus(t *testing.T, want string) (status *operator.Status) {
	t.Helper()
	var got string
	eventually.True(t, want, func() bool {
		status, got = e.status(t)
		return got == want
	}, func() string { return got })
	return status
}

// TestStatus: the word, and every reason, through what happens to an outbox.
func TestStatus(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		e.awaitStatus(t, "degraded no_relay")
		e.emit(t, placed.New("1", order{}))
		if status := e.awaitStatus(t, "broken no_relay"); status.Ready.Events != 1 ||
			!strings.Contains(status.Reasons[0].Text, "1 event ") {
			t.Errorf("got %+v", status)
		}
		e.answers(func(m *publish.Message) error {
			switch m.AggregateID {
			case "bad":
				return &publish.TerminalError{Reason: "rejected", Err: errors.New("it is bad")}
			case "down":
				return &publish.TopicError{Err: errors.New("no such topic")}
			}
			return nil
		})
		e.fleet(t)
		e.awaitStatus(t, "healthy ")
		e.emit(t, placed.New("bad", order{}))
		e.emit(t, placed.New("bad", order{}), unknown.New("1", order{}))
		eventually.True(t, "one waits behind the dead one", func() bool {
			status := e.awaitStatus(t, "degraded dead parked")
			return status.BlockedAggregates == 1 && status.Waiting.Events == 1
		})
		for n := range 12 { // one would be retried for a while
			e.emit(t, billed.New("down", order{N: n}))
		}
		e.awaitStatus(t, "broken topic_failing dead parked")
		e.Exec(t, "INSERT INTO {schema}.outbox_pauses (scope, name, actor, reason) "+
			"VALUES ('type', 'order_shipped', 'ada', 'x')")
		e.awaitStatus(t, "broken topic_failing paused dead parked")
		e.Exec(t, "UPDATE {schema}.outbox_retention SET halted_at = now(), halt_reason = 'too much' WHERE kind = 'dead'")
		e.awaitStatus(t, "broken topic_failing paused dead parked retention_halted")
	})
}

// TestStatusOfALateOutbox: a minute is late, ten are too late; where everything is paused nobody is late.
func TestStatusOfALateOutbox(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		// A relay that is alive, holds everything, and does nothing.
		id := outbox.NewID().String()
		e.Exec(t, leases.Join, id, "idle", "1 hour")
		e.Exec(t, leases.Hold, id)
		e.old(t, 2*time.Minute, "order_shipped", "1")
		e.awaitStatus(t, "degraded late")
		e.old(t, time.Hour, "order_shipped", "2")
		e.awaitStatus(t, "broken late")
		e.Exec(t, "INSERT INTO {schema}.outbox_pauses (scope, name, actor, reason) VALUES ('topic', 'mails', 'ada', 'x')")
		e.awaitStatus(t, "broken late paused") // of something else
		e.Exec(t, "INSERT INTO {schema}.outbox_pauses (scope, name, actor, reason) VALUES ('all', '', 'ada', 'x')")
		e.awaitStatus(t, "degraded paused")
	})
}

// TestStatusWithoutAPart: what the database does not answer is not known, and the rest is there.
func TestStatusWithoutAPart(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		id := outbox.NewID().String()
		e.Exec(t, leases.Join, id, "idle", "1 hour")
		e.Exec(t, leases.Hold, id)
		e.emit(t, shipped.New("1", order{}))
		lock := e.Begin(t)
		if _, err := lock.Exec(t.Context(), e.SQL("LOCK TABLE {schema}.outbox_held IN ACCESS EXCLUSIVE MODE")); err != nil {
			t.Fatal(err)
		}
		status, got := e.status(t)
		if got != "degraded not_known not_known" || strings.Join(status.NotKnown, " ") != "dead held" ||
			status.Ready.Events != 1 || status.Relays != 1 {
			t.Errorf("%s: %+v", got, status)
		}
		e.want(t, e.role, 0, `(?s)Degraded: dead .*is not known.*also held .*is not known.*ready +1 .*parked +\?.*relays +1`,
			"status")
		if err := lock.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.awaitStatus(t, "healthy ")
	})
}

// TestAfterARestore: a relay that runs and waits for the resume is not told to be missing.
func TestAfterARestore(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		restored(t, e)
		e.awaitStatus(t, "broken restored")
		e.want(t, e.role, 0, `^no relay shows: .*resume --restored`, "relays")
		e.want(t, e.role, 2, `(?s)0 relays are alive, but those that wait for the resume do not show.*restored or copied`,
			"check")
		if _, found, _ := e.call(t, e.role, "doctor"); !strings.Contains(found, "restored") ||
			strings.Contains(found, "no_relay") {
			t.Errorf("got %s", found)
		}
	})
}

// TestTraffic adds up what several relays wrote, and says how long the published ones took.
func TestTraffic(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		write := func(age, topic string, published int64, bucket, pending int, oldest float64) {
			latencies := make([]int64, 16)
			latencies[bucket] = published
			e.Exec(t, `INSERT INTO {schema}.outbox_minutes
				SELECT date_trunc('minute', clock_timestamp()) - $1::text::interval, $2::text,
					gen_random_uuid(), $3::bigint + 1, $3, 1, 2, 3, 4, 5, $4::bigint[], $5::bigint, $6::float8`,
				age, topic, published, latencies, pending, oldest)
		}
		write("1 minute", "orders", 90, 2, 7, 1.5)
		write("1 minute", "orders", 10, 15, 9, 0.5) // another relay
		write("2 minutes", "orders", 100, 2, 99, 99)
		write("1 minute", "bills", 1, 0, 0, 0)
		// Nobody wrote before that: these minutes are no part of a rate. One more may have passed meanwhile.
		began, err := e.viewer.Traffic(t.Context(), 5)
		if err != nil || len(began) != 2 || began[0].Minutes < 2 || began[0].Minutes > 3 ||
			began[1].Minutes != began[0].Minutes {
			t.Errorf("got %+v (%v)", began, err)
		}
		write("9 minutes", "old", 1, 0, 0, 0)
		write("0 minutes", "not over", 1, 0, 0, 0)
		got, err := e.viewer.Traffic(t.Context(), 5)
		// The minute may have turned meanwhile: what is over then is there as well.
		got = slices.DeleteFunc(got, func(topic operator.Traffic) bool { return topic.Topic == "not over" })
		if err != nil || len(got) != 2 || got[0].Topic != "orders" || got[1].Topic != "bills" || got[0].Oldest == nil {
			t.Fatalf("got %+v (%v)", got, err)
		}
		orders := got[0]
		if text := fmt.Sprint(orders.Arrived, orders.Published, orders.Died, orders.Failed(), *orders.Pending, *orders.Oldest,
			orders.Minutes); text != "203 200 15 30 9 1.5 5" {
			t.Errorf("got %s of %+v", text, orders)
		}
		if p50, over, known := orders.Latency(0.5); p50 != 25*time.Millisecond || over || !known {
			t.Errorf("p50 is %s", p50)
		}
		if p99, over, known := orders.Latency(0.99); p99 != 30*time.Minute || !over || !known {
			t.Errorf("p99 is %s", p99)
		}
		if _, _, known := (&operator.Traffic{}).Latency(0.5); known {
			t.Error("nothing took any time")
		}
	})
}

// TestProblems groups what goes wrong: the same words but for ids, numbers and quotes are one problem.
func TestProblems(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		e.answers(func(m *publish.Message) error {
			switch m.Topic {
			case "orders":
				return &publish.RejectedError{Err: fmt.Errorf("order %s of %q is too large: %d bytes", m.ID,
					m.AggregateID, 1000+len(m.AggregateID))}
			default:
				return &publish.TerminalError{Reason: "rejected", Err: errors.New("no such customer")}
			}
		})
		e.fleet(t)
		if found, err := e.viewer.Problems(t.Context()); err != nil || len(found.Problems) != 0 || !found.Complete {
			t.Errorf("in an empty outbox: %+v (%v)", found, err)
		}
		e.emit(t, shipped.New("a", order{}), shipped.New("bb", order{}), billed.New("a", order{}))
		var found *operator.Problems
		eventually.True(t, "two problems", func() (ok bool) {
			var err error
			if found, err = e.viewer.Problems(t.Context()); err != nil {
				t.Fatal(err)
			}
			return len(found.Problems) == 2 && found.Problems[0].Count+found.Problems[1].Count == 3
		}, func() string { return fmt.Sprintf("%+v", found) })
		slices.SortFunc(found.Problems, func(a, b operator.Problem) int { return strings.Compare(a.Topic, b.Topic) })
		bill, ship := found.Problems[0], found.Problems[1]
		if bill.EventType != "order_billed" || bill.Class != "dead: rejected" ||
			!strings.HasSuffix(bill.Error, ": no such customer") || bill.Example == "" {
			t.Errorf("got %+v", bill)
		}
		if ship.EventType != "order_shipped" || ship.Class != "rejected" || ship.Events != 2 ||
			ship.Error != "rejected: order <id> of <text> is too large: <n> bytes" {
			t.Errorf("got %+v", ship)
		}
	})
}
