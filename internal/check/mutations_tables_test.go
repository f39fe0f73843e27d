package check_test

import (
	"slices"

	"github.com/posthaste-dev/posthaste/internal/check"
)

func isRow(states ...check.State) func(*check.Record) bool {
	return func(r *check.Record) bool {
		return r.Row != nil && slices.Contains(states, r.Row.State)
	}
}

func isHeld(r *check.Record) bool { return r.Held != nil }

func isAction(verb check.Verb) func(*check.Record) bool {
	return func(r *check.Record) bool { return r.Action != nil && r.Action.Verb == verb }
}

// letterOf fits dead letters of events that died once and are in the state.
func (v *view) letterOf(states ...check.State) func(*check.Record) bool {
	return func(r *check.Record) bool {
		return r.Letter != nil && slices.Contains(states, v.state(r.Letter.ID)) && v.of[r.Letter.ID].letters == 1
	}
}

var mutatedTables = []mutation{
	{
		name: "remove a dead letter", caught: check.DeadWithoutLetter, also: []check.Counter{check.Lost},
		apply: func(v *view) bool {
			return v.drop(v.letterOf(check.Dead, check.DeadBlocking))
		},
	},
	{
		name: "write a dead letter of what was published", caught: check.LetterWithoutDead,
		also: []check.Counter{check.IllegalTransitions}, apply: func(v *view) bool {
			r := v.pick(func(r *check.Record) bool { return r.Delivery != nil && v.plain(r.Delivery.ID) })
			return r != nil &&
				v.add(check.Record{
					Letter: &check.Letter{
						ID: r.Delivery.ID, Reason: "rejected", Blocking: true, Payload: r.Delivery.Payload, Headers: r.Delivery.Headers,
					},
				})
		},
	},
	{name: "undo a redrive without a publish", caught: check.IllegalTransitions, apply: func(v *view) bool {
		r := v.pick(v.letterOf(check.DeadBlocking))
		if r == nil {
			return false
		}
		id := r.Letter.ID
		return v.add(
			check.Record{Change: &check.Change{ID: id, From: check.DeadBlocking, To: check.Retrying}},
			check.Record{Change: &check.Change{ID: id, From: check.Retrying, To: check.DeadBlocking}},
			check.Record{Action: &check.Action{ID: id, Verb: check.Redrive, Actor: "ada"}},
			check.Record{
				Letter: &check.Letter{
					ID: id, Reason: "rejected", Blocking: true, Payload: r.Letter.Payload, Headers: r.Letter.Headers,
				},
			},
		)
	}},
	{name: "count the attempts of a dead letter twice", caught: check.ChargedWrongly, apply: func(v *view) bool {
		return v.edit(func(r *check.Record) bool { return r.Letter != nil }, func(r *check.Record) {
			r.Letter.Attempts += 30
		})
	}},
	{name: "write a dead letter with other bytes", caught: check.Corrupted, apply: func(v *view) bool {
		return v.edit(func(r *check.Record) bool { return r.Letter != nil }, func(r *check.Record) {
			r.Letter.Payload[5] ^= 4
		})
	}},
	{
		name: "revive a dead row", caught: check.LetterWithoutDead,
		also: []check.Counter{check.Stuck, check.OrderViolations, check.HeldWithoutRow, check.HeldDiffers},
		apply: func(v *view) bool {
			return v.edit(isRow(check.Dead, check.DeadBlocking), func(r *check.Record) { r.Row.State = check.Retrying })
		},
	},
	{
		name: "stop a dead row from blocking", caught: check.IllegalTransitions,
		also: []check.Counter{check.Stuck, check.RowWithoutHeld},
		apply: func(v *view) bool {
			return v.edit(isRow(check.DeadBlocking), func(r *check.Record) { r.Row.State = check.Dead })
		},
	},
	{
		name: "redrive without an operator", caught: check.IllegalTransitions, also: []check.Counter{check.LetterWithoutDead},
		apply: func(v *view) bool {
			return v.drop(isAction(check.Redrive))
		},
	},
	{
		name: "discard without an operator", caught: check.IllegalTransitions,
		also:  []check.Counter{check.LetterWithoutDead, check.Lost},
		apply: func(v *view) bool { return v.drop(isAction(check.Discard)) },
	},
	{name: "skip without an operator", caught: check.IllegalTransitions, apply: func(v *view) bool {
		return v.drop(isAction(check.Skip))
	}},
	{
		name: "act without a name", caught: check.Malformed,
		also: []check.Counter{check.IllegalTransitions, check.LetterWithoutDead, check.Lost}, apply: func(v *view) bool {
			return v.edit(func(r *check.Record) bool { return r.Action != nil }, func(r *check.Record) { r.Action.Actor = "" })
		},
	},
	{name: "publish a published row again", caught: check.IllegalTransitions, apply: func(v *view) bool {
		r := v.pick(isRow(check.Published))
		return r != nil && v.add(check.Record{Change: &check.Change{ID: r.Row.ID, From: check.Published, To: check.Ready}})
	}},
	{name: "forget a published row", caught: check.IllegalTransitions, apply: func(v *view) bool {
		return v.drop(isRow(check.Published))
	}},
	{
		name: "forget a dead row", caught: check.Lost,
		also: []check.Counter{
			check.LetterWithoutDead, check.Stuck, check.IllegalTransitions, check.RowWithoutHeld,
		},
		apply: func(v *view) bool {
			return v.drop(func(r *check.Record) bool {
				return isRow(check.Dead, check.DeadBlocking)(r) && v.deliveries(r.Row.ID) == 0
			})
		},
	},
	{name: "clear published_at", caught: check.IllegalTransitions, apply: func(v *view) bool {
		return v.edit(isRow(check.Published), func(r *check.Record) { r.Row.Published = false })
	}},
	{name: "leave a row ready", caught: check.Stuck, apply: func(v *view) bool {
		return v.edit(func(r *check.Record) bool {
			return isRow(check.Published)(r) && v.plain(r.Row.ID)
		}, func(r *check.Record) {
			r.Row.State, r.Row.Published = check.Ready, false
		})
	}},
	{
		name: "mark a row published that was never sent", caught: check.Lost, also: []check.Counter{check.RowWithoutHeld},
		apply: func(v *view) bool {
			return v.edit(func(r *check.Record) bool {
				return isRow(check.Waiting)(r) && v.deliveries(r.Row.ID) == 0
			}, func(r *check.Record) {
				r.Row.State, r.Row.Published = check.Published, true
			})
		},
	},
	{name: "know the type of a parked row", caught: check.Stuck, apply: func(v *view) bool {
		return v.any(isRow(check.Parked)) && v.edit(func(r *check.Record) bool {
			return r.End != nil
		}, func(r *check.Record) { r.End.UnknownTypes = nil })
	}},
	{name: "list a row twice", caught: check.Malformed, apply: func(v *view) bool {
		return v.add(*v.pick(func(r *check.Record) bool { return r.Row != nil }))
	}},
	{name: "forget how an event is held", caught: check.HeldWithoutRow, apply: func(v *view) bool {
		return v.drop(isHeld)
	}},
	{name: "keep a published event in outbox_held", caught: check.RowWithoutHeld, apply: func(v *view) bool {
		r := v.pick(isRow(check.Published))
		return r != nil && v.add(check.Record{
			Held: &check.Held{ID: r.Row.ID, Seq: r.Row.Seq, Kind: check.Retrying, Due: true},
		})
	}},
	{name: "keep nothing in outbox_held", caught: check.RowWithoutHeld, apply: func(v *view) bool {
		return v.add(check.Record{Held: &check.Held{Lane: 1, Seq: 1 << 40, Kind: check.Waiting}})
	}},
	{name: "hold an event in another way", caught: check.HeldDiffers, apply: func(v *view) bool {
		return v.edit(isHeld, func(r *check.Record) {
			r.Held.Kind = check.Retrying + (r.Held.Kind-check.Retrying+1)%4
			r.Held.Due = r.Held.Kind == check.Retrying
		})
	}},
	{name: "make a held event due that is no retry", caught: check.HeldDiffers, apply: func(v *view) bool {
		return v.edit(isHeld, func(r *check.Record) { r.Held.Due = !r.Held.Due })
	}},
	{name: "hold an event under another name", caught: check.HeldDiffers, apply: func(v *view) bool {
		return v.edit(isHeld, func(r *check.Record) { r.Held.Alien = true })
	}},
	{name: "list a held event twice", caught: check.Malformed, apply: func(v *view) bool {
		r := v.pick(isHeld)
		return r != nil && v.add(*r)
	}},
	{name: "count attempts that never failed", caught: check.ChargedWrongly, apply: func(v *view) bool {
		return v.edit(func(r *check.Record) bool { return r.Row != nil }, func(r *check.Record) { r.Row.Attempts += 30 })
	}},
}
