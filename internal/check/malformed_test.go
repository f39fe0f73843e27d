package check_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Records that contradict others make a run worthless: it is not known which of them is right.
func TestContradictions(t *testing.T) {
	t.Parallel()
	sent := func(records ...check.Record) check.History {
		return append(check.History{wrote(1), delivery(1, 1), end()}, records...)
	}
	held := func(records ...check.Record) check.History {
		return append(check.History{wrote(1), row(1, check.Parked), ended(check.End{})}, records...)
	}
	keyed := func(key string, outcome check.Outcome, events ...check.Event) check.Record {
		return check.Record{Tx: &check.Tx{Key: key, Outcome: outcome, Events: events}}
	}
	rolledBack := event(2)
	rolledBack.Version = 9
	impossible := row(1, check.Absent)
	nameless := action(1, check.Redrive, 0)
	nameless.Action.Actor = ""
	testAll(t, []definition{
		{name: "two ends", count: check.Malformed, bad: sent(end()), good: sent()},
		{
			name: "a transaction without a key", count: check.Malformed, bad: sent(keyed("", check.Failed, event(2))),
			good: sent(keyed("k", check.Failed, event(2))),
		},
		{
			name: "an unknown outcome", count: check.Malformed, bad: sent(keyed("k", "maybe", event(2))),
			good: sent(keyed("k", check.Failed, event(2))),
		},
		{
			name: "begun twice", count: check.Malformed,
			bad: sent(keyed("k", check.Begun, event(2)), keyed("k", check.Begun, event(3)), keyed("k", check.Failed)),
			good: sent(keyed("k", check.Begun, event(2)), keyed("k", check.Failed), keyed("l", check.Begun, event(2)),
				keyed("l", check.Failed)),
		},
		{
			name: "ended without having begun", count: check.Malformed, bad: sent(keyed("k", check.OK)),
			good: sent(keyed("k", check.Begun), keyed("k", check.OK)),
		},
		{
			name: "one id with two contents", count: check.Malformed,
			bad:  sent(keyed("k", check.OK, event(2)), delivery(2, 2), keyed("l", check.OK, rolledBack)),
			good: sent(keyed("k", check.Failed, rolledBack), keyed("l", check.OK, event(2)), delivery(2, 2)),
		},
		{
			name: "a fault without a kind", count: check.Malformed, bad: sent(fault(check.Fault{})),
			good: sent(fault(check.Fault{Kind: "rain"})),
		},
		{name: "an impossible state", count: check.Malformed, bad: sent(impossible), good: sent(row(1, check.Published))},
		{
			name: "an impossible kind", count: check.Malformed, bad: held(heldRow(1, check.Dead)),
			good: held(heldRow(1, check.Parked)),
		},
		{
			name: "a held row listed twice", count: check.Malformed,
			bad:  held(heldRow(1, check.Parked), heldRow(1, check.Parked)),
			good: held(heldRow(1, check.Parked)),
		},
		{
			name: "an effect listed twice", count: check.Malformed, bad: sent(effect(1, 1), effect(1, 1)),
			good: sent(effect(1, 1), effect(1, 0)),
		},
		{
			name: "a request listed twice", count: check.Malformed,
			bad:  sent(request(1, 1, check.RequestFailed), request(1, 1, check.RequestFailed)),
			good: sent(request(1, 1, check.RequestFailed), request(2, 1, check.RequestFailed)),
		},
		{
			name: "a request for two events", count: check.Malformed,
			bad:  sent(wrote(2), delivery(2, 2), copyOf(3, 2, 1), request(1, 1, check.RequestFailed)),
			good: sent(wrote(2), delivery(2, 2), copyOf(3, 2, 1), request(1, 2, check.RequestFailed)),
		},
		{name: "an action of nobody", count: check.Malformed, bad: sent(nameless), good: sent(action(1, check.Reissue, 0))},
		{
			name: "an unknown verb", count: check.Malformed, bad: sent(action(1, "sing", 0)),
			good: sent(action(1, check.Free, 0)),
		},
		{
			name: "an action on nothing", count: check.Malformed, bad: sent(action(7, check.Skip, 0)),
			good: sent(action(1, check.Skip, 0)),
		},
		{
			name: "an unknown class", count: check.Malformed, bad: sent(publishFailed(1, "mood")),
			good: sent(publishFailed(1, check.OfEvent)),
		},
		{
			name: "a lane without a token", count: check.Malformed,
			bad:  sent(check.Record{Step: &check.Step{Do: check.Acquire, Relay: "r"}}),
			good: sent(check.Record{Step: &check.Step{Do: check.Acquire, Relay: "r", Token: "k"}}),
		},
		{
			name: "a lane acquired twice", count: check.Malformed,
			bad:  sent(did(0, check.Step{Do: check.Acquire}), did(0, check.Step{Do: check.Acquire})),
			good: sent(did(0, check.Step{Do: check.Acquire}), did(0, check.Step{Do: check.Renew})),
		},
	})
}
