package check_test

import (
	"slices"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// tooLittle marks mutations that break nothing, and leave too little to check.
const tooLittle = check.Counter(255)

var mutations = slices.Concat(mutatedDeliveries, mutatedTransactions, mutatedTables, mutatedRelays)

var mutatedDeliveries = []mutation{
	{name: "drop a delivery", caught: check.Lost, apply: func(v *view) bool {
		return v.drop(func(r *check.Record) bool { return r.Delivery != nil && v.plain(r.Delivery.ID) })
	}},
	{name: "swap two deliveries of an aggregate", caught: check.OrderViolations, apply: swap},
	{name: "deliver twice without a cause", caught: check.DuplicatesUnexplained, apply: func(v *view) bool {
		return v.again(func(d *check.Delivery) bool { return v.plain(d.ID) })
	}},
	{name: "deliver once more than there are causes", caught: check.DuplicatesUnexplained, apply: func(v *view) bool {
		return v.again(func(d *check.Delivery) bool {
			return d.Request == 0 && v.deliveries(d.ID) == v.causes(d.ID)+1 && v.state(d.ID) == check.Published
		})
	}},
	{name: "change the payload", caught: check.Corrupted, apply: func(v *view) bool {
		return v.edit(isDelivery, func(r *check.Record) { r.Delivery.Payload[v.rand.IntN(32)] ^= 1 << v.rand.IntN(8) })
	}},
	{name: "change the headers", caught: check.Corrupted, apply: func(v *view) bool {
		return v.edit(isDelivery, func(r *check.Record) { r.Delivery.Headers[v.rand.IntN(32)] ^= 1 << v.rand.IntN(8) })
	}},
	{name: "change the key", caught: check.Corrupted, apply: func(v *view) bool {
		return v.edit(isDelivery, func(r *check.Record) { r.Delivery.Key += "0" })
	}},
	{name: "change the type", caught: check.Corrupted, apply: func(v *view) bool {
		return v.edit(isDelivery, func(r *check.Record) { r.Delivery.Type = "newer" })
	}},
	{name: "deliver to another topic", caught: check.Corrupted, apply: func(v *view) bool {
		return v.edit(isDelivery, func(r *check.Record) { r.Delivery.Topic = "topic-7" })
	}},
	{name: "deliver what was rolled back", caught: check.Phantom, apply: func(v *view) bool {
		r := v.pick(func(r *check.Record) bool {
			return r.Tx != nil && len(r.Tx.Events) > 0 && v.ends[r.Tx.Key] == check.Failed
		})
		return r != nil && v.add(check.Record{Delivery: deliveryOf(&r.Tx.Events[0], v.arrivals()+1)})
	}},
	{name: "deliver what nobody wrote", caught: check.Phantom, apply: func(v *view) bool {
		return v.add(check.Record{Delivery: &check.Delivery{Index: v.arrivals() + 1, ID: check.ID{9}}})
	}},
	{
		name: "deliver without an index", caught: check.Malformed, also: []check.Counter{check.Lost},
		apply: func(v *view) bool {
			return v.edit(isDelivery, func(r *check.Record) { r.Delivery.Index = 0 })
		},
	},
	{name: "drop a copy that was asked for", caught: check.RequestsUnserved, apply: func(v *view) bool {
		return v.drop(func(r *check.Record) bool { return r.Delivery != nil && r.Delivery.Request != 0 })
	}},
	{name: "copy what nobody asked for", caught: check.DuplicatesUnexplained, apply: func(v *view) bool {
		return v.drop(func(r *check.Record) bool { return r.Request != nil })
	}},
	{name: "apply twice", caught: check.DoubleEffects, apply: func(v *view) bool {
		return v.edit(isEffect, func(r *check.Record) { r.Effect.Count++ })
	}},
	{name: "apply never", caught: check.EffectsMissing, apply: func(v *view) bool { return v.drop(isEffect) }},
	{name: "forget the end", caught: tooLittle, apply: func(v *view) bool {
		return v.drop(func(r *check.Record) bool { return r.End != nil })
	}},
}

func isDelivery(r *check.Record) bool { return r.Delivery != nil }

func isEffect(r *check.Record) bool { return r.Effect != nil }

func deliveryOf(e *check.Event, index uint64) *check.Delivery {
	return &check.Delivery{
		Index: index, ID: e.ID, Type: e.Type, Topic: e.Topic, Key: e.Key, Payload: e.Payload, Headers: e.Headers,
	}
}

// again delivers something once more, after everything else.
func (v *view) again(fits func(*check.Delivery) bool) bool {
	r := v.pick(func(r *check.Record) bool { return r.Delivery != nil && fits(r.Delivery) })
	if r == nil {
		return false
	}
	d := *r.Delivery
	d.Index = v.arrivals() + 1
	return v.add(check.Record{Delivery: &d})
}

// swap exchanges the arrivals of two versions of one aggregate that both went out at the first attempt.
func swap(v *view) bool {
	var lower *check.Delivery
	ordered := func(r *check.Record) bool {
		return r.Delivery != nil && v.plain(r.Delivery.ID) && v.event(r.Delivery.ID).Version > 0
	}
	r := v.pick(ordered)
	if r == nil {
		return false
	}
	lower = r.Delivery
	e := v.event(lower.ID)
	r = v.pick(func(r *check.Record) bool {
		if !ordered(r) {
			return false
		}
		other := v.event(r.Delivery.ID)
		return other.Aggregate == e.Aggregate && other.Version > e.Version
	})
	if r == nil {
		return false
	}
	lower.Index, r.Delivery.Index = r.Delivery.Index, lower.Index
	return true
}

var mutatedTransactions = []mutation{
	{name: "say that a commit failed", caught: check.Phantom, apply: func(v *view) bool {
		return v.edit(func(r *check.Record) bool { return r.Tx != nil && r.Tx.Outcome == check.OK }, func(r *check.Record) {
			r.Tx.Outcome = check.Failed
		})
	}},
	{name: "say that a rollback committed", caught: check.Lost, apply: func(v *view) bool {
		return v.edit(func(r *check.Record) bool {
			return r.Tx != nil && r.Tx.Outcome == check.Failed
		}, func(r *check.Record) { r.Tx.Outcome = check.OK })
	}},
	{name: "forget how a transaction ended", caught: check.Unresolved, apply: func(v *view) bool {
		return v.drop(func(r *check.Record) bool {
			return r.Tx != nil && (r.Tx.Outcome == check.OK || r.Tx.Outcome == check.Failed)
		})
	}},
	{
		name: "forget that a transaction began", caught: check.Malformed, also: []check.Counter{check.Phantom, check.Stuck},
		apply: func(v *view) bool {
			return v.drop(func(r *check.Record) bool { return r.Tx != nil && len(r.Tx.Events) > 0 })
		},
	},
	{name: "end a transaction twice", caught: check.Malformed, apply: func(v *view) bool {
		r := v.pick(func(r *check.Record) bool { return r.Tx != nil && r.Tx.Outcome == check.OK })
		return v.add(*r)
	}},
	{name: "write an event twice with other bytes", caught: check.Malformed, apply: func(v *view) bool {
		r := v.pick(func(r *check.Record) bool { return r.Delivery != nil })
		e := v.event(r.Delivery.ID)
		e.Payload[0] ^= 1
		return v.add(check.Record{Tx: &check.Tx{Key: "again", Outcome: check.OK, Events: []check.Event{e}}})
	}},
	{name: "write a record of no kind", caught: check.Malformed, apply: func(v *view) bool {
		return v.add(check.Record{})
	}},
	{name: "emit what nobody relays", caught: check.Lost, apply: func(v *view) bool {
		return v.add(check.Record{
			Tx: &check.Tx{
				Key: "late", Outcome: check.OK, Events: []check.Event{{ID: check.ID{8}, Topic: "topic-0", Aggregate: "late"}},
			},
		})
	}},
}
