package check_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

func TestWhatBecameOfAnEvent(t *testing.T) {
	t.Parallel()
	testAll(t, stuck())
	testAll(t, []definition{
		{
			name: "never delivered", count: check.Lost,
			bad:  check.History{wrote(1), end()},
			good: check.History{wrote(1), delivery(1, 1), end()},
		},
		{
			name: "marked published without a delivery", count: check.Lost,
			bad:  check.History{wrote(1), row(1, check.Published), end()},
			good: check.History{wrote(1), row(1, check.Published), delivery(1, 1), end()},
		},
		{
			name: "dead without a letter", count: check.Lost, also: []check.Counter{check.DeadWithoutLetter},
			bad:  check.History{wrote(1), row(1, check.Dead), end()},
			good: check.History{wrote(1), row(1, check.Dead), letter(1, false, 0), end()},
		},
		{
			name: "discarded by nobody", count: check.Lost, also: []check.Counter{check.IllegalTransitions},
			bad:  check.History{wrote(1), row(1, check.Discarded), end()},
			good: check.History{wrote(1), row(1, check.Discarded), letter(1, true, 0), action(1, check.Discard, 0), end()},
		},
		{
			name: "unknown turned out as committed", count: check.Lost,
			bad: check.History{
				tx(check.Unknown, event(1)), {Tx: &check.Tx{Key: tx(check.Unknown, event(1)).Tx.Key, Outcome: check.OK}}, end(),
			},
			good: check.History{
				wrote(2), delivery(1, 2), tx(check.Unknown, event(1)),
				{Tx: &check.Tx{Key: tx(check.Unknown, event(1)).Tx.Key, Outcome: check.Failed}},
				end(),
			},
		},
		{
			name: "taken by retention before it was published", count: check.Lost,
			bad:  check.History{wrote(1), ended(check.End{Drained: true, Dumped: true, Retention: true})},
			good: check.History{wrote(1), delivery(1, 1), ended(check.End{Drained: true, Dumped: true, Retention: true})},
		},
		{
			name: "of a transaction that failed", count: check.Phantom,
			bad:  check.History{wrote(2), delivery(1, 2), tx(check.Failed, event(1)), delivery(2, 1), end()},
			good: check.History{wrote(2), delivery(1, 2), tx(check.Failed, event(1)), end()},
		},
		{
			name: "of no transaction at all", count: check.Phantom,
			bad:  check.History{wrote(1), delivery(1, 1), delivery(2, 9), end()},
			good: check.History{delivery(1, 1), wrote(1), end()},
		},
		{
			name: "a row of a transaction that failed", count: check.Phantom,
			bad: check.History{wrote(2), delivery(1, 2), tx(check.Failed, event(1)), row(1, check.Ready), end()},
			good: check.History{
				wrote(2), delivery(2, 2), tx(check.OK, event(1)), delivery(1, 1), row(1, check.Published), end(),
			},
		},
		{
			name: "nobody asked", count: check.Unresolved,
			bad:  check.History{wrote(2), delivery(1, 2), tx(check.Unknown, event(1)), delivery(2, 1), end()},
			good: check.History{wrote(2), delivery(1, 2), end()},
		},
		{
			name: "the producer died", count: check.Unresolved,
			bad: check.History{wrote(2), delivery(1, 2), tx(check.Begun, event(1)), end()},
			good: check.History{
				wrote(2), delivery(1, 2), tx(check.Begun, event(1)),
				{Tx: &check.Tx{Key: tx(check.Begun, event(1)).Tx.Key, Outcome: check.Failed}},
				end(),
			},
		},
	})
}

// stuck are events that nobody publishes and nobody holds.
func stuck() []definition {
	drained := check.End{Drained: true, Dumped: true}
	return []definition{
		{
			name: "ready when drained", count: check.Stuck,
			bad:  check.History{wrote(1), row(1, check.Ready), ended(drained)},
			good: check.History{wrote(1), row(1, check.Ready), ended(check.End{Dumped: true})},
		},
		{
			name: "delivered and never settled", count: check.Stuck,
			bad:  check.History{wrote(1), delivery(1, 1), row(1, check.Retrying), ended(drained)},
			good: check.History{wrote(1), delivery(1, 1), row(1, check.Published), ended(drained)},
		},
		{
			name: "parked for a type that relays know", count: check.Stuck,
			bad:  check.History{wrote(1), row(1, check.Parked), ended(drained)},
			good: check.History{wrote(1), row(1, check.Parked), ended(check.End{Drained: true, UnknownTypes: []string{"k"}})},
		},
		{
			name: "waiting behind nothing", count: check.Stuck,
			bad:  check.History{wrote(1, 2), row(1, check.Published), delivery(1, 1), row(2, check.Waiting), end()},
			good: check.History{wrote(1, 2), row(1, check.DeadBlocking), letter(1, true, 0), row(2, check.Waiting), end()},
		},
		{
			name: "waiting before the head that blocks", count: check.Stuck,
			bad: check.History{wrote(1, 2), row(2, check.DeadBlocking), letter(2, true, 0), row(1, check.Waiting), end()},
			good: check.History{
				wrote(1, 2), row(1, check.Parked), row(2, check.Waiting),
				ended(check.End{Drained: true, UnknownTypes: []string{"k"}}),
			},
		},
		{
			name: "retrying behind nothing", count: check.Stuck,
			bad:  check.History{wrote(1, 2), row(1, check.Published), delivery(1, 1), row(2, check.Retrying), end()},
			good: check.History{wrote(1, 2), row(1, check.DeadBlocking), letter(1, true, 0), row(2, check.Retrying), end()},
		},
		{
			name: "retrying before the head that blocks", count: check.Stuck,
			bad: check.History{wrote(1, 2), row(2, check.DeadBlocking), letter(2, true, 0), row(1, check.Retrying), end()},
			good: check.History{
				wrote(1, 2), row(1, check.Parked), row(2, check.Retrying),
				ended(check.End{Drained: true, UnknownTypes: []string{"k"}}),
			},
		},
		{
			name: "released, of an unknown type, and not parked again", count: check.Stuck,
			bad:  check.History{wrote(1), row(1, check.Retrying), ended(check.End{Drained: true, UnknownTypes: []string{"k"}})},
			good: check.History{wrote(1), row(1, check.Parked), ended(check.End{Drained: true, UnknownTypes: []string{"k"}})},
		},
	}
}

func TestWhatBecameOfAnEffect(t *testing.T) {
	t.Parallel()
	testAll(t, []definition{
		{
			name: "no effect", count: check.EffectsMissing,
			bad:  check.History{wrote(1), delivery(1, 1), ended(check.End{Effects: true})},
			good: check.History{wrote(1), delivery(1, 1), effect(1, 1), ended(check.End{Effects: true})},
		},
		{
			name: "two effects", count: check.DoubleEffects,
			bad:  check.History{wrote(1), delivery(1, 1), effect(1, 2), end()},
			good: check.History{wrote(1), delivery(1, 1), effect(1, 1), end()},
		},
	})
}

func TestBytesAndNames(t *testing.T) {
	t.Parallel()
	with := func(edit func(*check.Delivery)) check.Record {
		r := delivery(1, 1)
		edit(r.Delivery)
		return r
	}
	good := check.History{wrote(1), delivery(1, 1), end()}
	other := letter(1, false, 0)
	other.Letter.Payload[31] ^= 1
	testAll(t, []definition{
		{
			name: "payload", count: check.Corrupted, good: good,
			bad: check.History{wrote(1), with(func(d *check.Delivery) { d.Payload[31] ^= 1 }), end()},
		},
		{
			name: "headers", count: check.Corrupted, good: good,
			bad: check.History{wrote(1), with(func(d *check.Delivery) { d.Headers[0] = 1 }), end()},
		},
		{
			name: "key", count: check.Corrupted, good: good,
			bad: check.History{wrote(1), with(func(d *check.Delivery) { d.Key = "other" }), end()},
		},
		{
			name: "type", count: check.Corrupted, good: good,
			bad: check.History{wrote(1), with(func(d *check.Delivery) { d.Type = "other" }), end()},
		},
		{
			name: "topic", count: check.Corrupted, good: good,
			bad: check.History{wrote(1), with(func(d *check.Delivery) { d.Topic = "other" }), end()},
		},
		{
			name: "dead letter", count: check.Corrupted,
			bad:  check.History{wrote(1), row(1, check.Dead), other, end()},
			good: check.History{wrote(1), row(1, check.Dead), letter(1, false, 0), end()},
		},
	})
}
