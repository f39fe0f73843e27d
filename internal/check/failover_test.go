package check_test

import (
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// failedOver is a history in which a standby that was behind became the primary: the settle of the first event and the
// commit of the second one are gone.
func failedOver() check.History {
	kept, gone := check.ID{1}, check.ID{2}
	event := func(id check.ID, version uint64) check.Event {
		return check.Event{ID: id, Topic: "topic", Aggregate: "order", Version: version, Payload: check.SumOf([]byte("x"))}
	}
	step := func(do check.Do, relay string, id check.ID, at int64) check.Record {
		s := check.Step{Do: do, Relay: relay, Token: relay, ID: id, At: at, Next: 1}
		if do == check.Acquire {
			s.Until = at + 1000
		}
		if do == check.Settle {
			s.Result, s.To = check.Applied, check.Published
		}
		return check.Record{Step: &s}
	}
	delivery := func(index uint64, id check.ID) check.Record {
		return check.Record{
			Delivery: &check.Delivery{Index: index, ID: id, Topic: "topic", Payload: check.SumOf([]byte("x"))},
		}
	}
	failover := func(id check.ID) check.Record {
		return check.Record{Fault: &check.Fault{Kind: check.Failover, ID: id, From: 50, To: 51, First: 3, Last: 3}}
	}
	return check.History{
		{Tx: &check.Tx{Key: "kept", Events: []check.Event{event(kept, 2)}, Outcome: check.OK}},
		{Tx: &check.Tx{Key: "gone", Events: []check.Event{event(gone, 1)}, Outcome: check.Undone}},
		step(check.Acquire, "old", check.ID{}, 10),
		step(check.Publish, "old", kept, 20), delivery(1, kept), step(check.Ack, "old", kept, 21),
		step(check.Settle, "old", kept, 22),
		step(check.Publish, "old", gone, 30), delivery(2, gone), step(check.Ack, "old", gone, 31),
		step(check.Settle, "old", gone, 32),
		failover(check.ID{}), failover(kept),
		step(check.Acquire, "new", check.ID{}, 60),
		step(check.Publish, "new", kept, 70), delivery(3, kept), step(check.Ack, "new", kept, 71),
		step(check.Settle, "new", kept, 72),
		{Row: &check.Row{ID: kept, State: check.Published, Published: true}},
		{End: &check.End{Drained: true, Dumped: true}},
	}
}

// TestAFailoverExplains: what it took back is neither lost nor a phantom nor out of order, and may be sent again.
func TestAFailoverExplains(t *testing.T) {
	t.Parallel()
	v := failedOver().Check(check.Floor{})
	if !v.Pass() || v.Count(check.TakenBack) != 1 || v.Count(check.Duplicates) != 1 {
		report(t, v)
		t.Errorf("%s", v.Line())
	}
}

// TestAFailoverExplainsNoMore: the same without the failover, or with a commit that was never durable.
func TestAFailoverExplainsNoMore(t *testing.T) {
	t.Parallel()
	unsaid := slices.DeleteFunc(failedOver(), func(r check.Record) bool { return r.Fault != nil })
	v := unsaid.Check(check.Floor{})
	for _, c := range []check.Counter{check.DuplicatesUnexplained, check.IllegalTransitions, check.OwnersOverlapping} {
		if v.Count(c) != 1 {
			t.Errorf("%s is %d without the failover", c, v.Count(c))
		}
	}
	phantom := failedOver()
	phantom[1].Tx.Outcome = check.Failed
	if v := phantom.Check(check.Floor{}); v.Count(check.Phantom) != 1 {
		t.Errorf("a commit that was never durable: %s", v.Line())
	}
	back := append(failedOver(), check.Record{Row: &check.Row{ID: check.ID{2}, State: check.Published, Published: true}})
	if v := back.Check(check.Floor{}); v.Count(check.Phantom) != 1 {
		t.Errorf("a commit that was taken back and has a row: %s", v.Line())
	}
}
