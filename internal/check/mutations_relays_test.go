package check_test

import "github.com/posthaste-dev/posthaste/internal/check"

func isStep(do check.Do) func(*check.Record) bool {
	return func(r *check.Record) bool { return r.Step != nil && r.Step.Do == do }
}

// like returns a step by the same relay at the same time.
func like(s *check.Step, change func(*check.Step)) check.Record {
	made := *s
	change(&made)
	return check.Record{Step: &made}
}

// excused tells whether every cause of the event led to a delivery, so that none may go.
func (v *view) excused(id check.ID) bool {
	return v.deliveries(id) > 1 && v.deliveries(id) == v.causes(id)+1 && v.state(id) == check.Published &&
		v.of[id].copies == 0
}

// killed finds a kill behind a delivery of an event that needs this kill as an excuse.
func (v *view) killed() *check.Record {
	for i := 1; i < len(v.history); i++ {
		r, before := &v.history[i], v.history[i-1]
		if r.Fault != nil && r.Fault.Kind == check.Kill && before.Delivery != nil && v.excused(before.Delivery.ID) {
			return r
		}
	}
	return nil
}

var mutatedRelays = []mutation{
	{name: "charge for the topic", caught: check.ChargedWrongly, apply: func(v *view) bool {
		return v.chargeFor(check.OfTopic)
	}},
	{name: "charge for a broken contract", caught: check.ChargedWrongly, apply: func(v *view) bool {
		return v.chargeFor(check.Broken)
	}},
	{name: "charge for a crash", caught: check.ChargedWrongly, apply: func(v *view) bool {
		return v.chargeFor(check.Crash)
	}},
	{name: "charge for a shutdown", caught: check.ChargedWrongly, apply: func(v *view) bool {
		return v.chargeFor(check.Shutdown)
	}},
	{name: "charge for a lost lease", caught: check.ChargedWrongly, apply: func(v *view) bool {
		return v.chargeFor(check.LostLease)
	}},
	{name: "charge for doubt in an outage", caught: check.ChargedWrongly, apply: func(v *view) bool {
		// In an outage nothing is settled: the step behind the failure is the outage itself.
		for i := range v.history[:len(v.history)-1] {
			r, next := &v.history[i], v.history[i+1]
			if isStep(check.PublishFailed)(r) && r.Step.Class == check.InDoubt && next.Fault != nil &&
				next.Fault.Kind == check.BrokerDown {
				return v.after(r, like(r.Step, func(s *check.Step) { s.Do = check.Charge }))
			}
		}
		return false
	}},
	{name: "forget a kill", caught: check.DuplicatesUnexplained, apply: func(v *view) bool {
		kill := v.killed()
		return kill != nil && v.drop(func(r *check.Record) bool { return r == kill })
	}},
	{name: "kill another relay instead", caught: check.DuplicatesUnexplained, apply: func(v *view) bool {
		kill := v.killed()
		if kill != nil {
			kill.Fault.Relay = "another"
		}
		return kill != nil
	}},
	{name: "be sure instead of in doubt", caught: check.DuplicatesUnexplained, apply: func(v *view) bool {
		return v.edit(func(r *check.Record) bool {
			return isStep(check.PublishFailed)(r) && r.Step.Class == check.InDoubt && v.excused(r.Step.ID)
		}, func(r *check.Record) { r.Step.Class = check.OfEvent })
	}},
	{
		name: "say that a failed settle was applied", caught: check.DuplicatesUnexplained,
		also: []check.Counter{check.IllegalTransitions},
		apply: func(v *view) bool {
			return v.edit(func(r *check.Record) bool {
				return isStep(check.Settle)(r) && r.Step.Result == check.NotDone && v.excused(r.Step.ID)
			}, func(r *check.Record) { r.Step.Result, r.Step.To = check.Applied, check.Published })
		},
	},
	{name: "settle twice", caught: check.IllegalTransitions, apply: func(v *view) bool {
		r := v.pick(func(r *check.Record) bool { return isStep(check.Settle)(r) && r.Step.To == check.Published })
		return r != nil && v.after(r, *r)
	}},
	{
		name: "hold a lane twice", caught: check.OwnersOverlapping, also: []check.Counter{check.StaleSettlesApplied},
		apply: func(v *view) bool {
			r := v.pick(isStep(check.Acquire))
			return v.after(r, like(r.Step, func(s *check.Step) { s.Relay, s.Token, s.At = "thief", "stolen", s.At+1 }))
		},
	},
	{name: "settle with a token that was taken over", caught: check.StaleSettlesApplied, apply: func(v *view) bool {
		first := v.pick(func(r *check.Record) bool { return isStep(check.Acquire)(r) && r.Step.Relay == "relay-1" })
		later := v.pick(func(r *check.Record) bool {
			return isStep(check.Acquire)(r) && r.Step.Relay != "relay-1" && r.Step.Lane == first.Step.Lane
		})
		some := v.pick(isDelivery)
		return later != nil && v.add(like(first.Step, func(s *check.Step) {
			s.Do, s.ID, s.At, s.Result, s.To = check.Settle, some.Delivery.ID, later.Step.At, check.Applied, check.Retrying
		}))
	}},
	{name: "settle with another's token", caught: check.StaleSettlesApplied, apply: func(v *view) bool {
		return v.edit(func(r *check.Record) bool {
			return isStep(check.Settle)(r) && r.Step.Result == check.Applied
		}, func(r *check.Record) { r.Step.Token = "guessed" })
	}},
	{name: "publish two of an aggregate at once", caught: check.OwnersOverlapping, apply: func(v *view) bool {
		r := v.pick(isStep(check.Publish))
		e := v.event(r.Step.ID)
		other := v.pick(func(r *check.Record) bool {
			return isStep(check.Publish)(r) && r.Step.ID != e.ID && v.event(r.Step.ID).Aggregate == e.Aggregate
		})
		return other != nil && v.after(r, like(r.Step, func(s *check.Step) { s.ID = other.Step.ID }))
	}},
	{
		name: "acknowledge what was not published", caught: check.Malformed,
		also: []check.Counter{check.DuplicatesUnexplained}, apply: func(v *view) bool {
			r := v.pick(isStep(check.Ack))
			return r != nil && v.after(r, like(r.Step, func(s *check.Step) { s.Token = "another" }))
		},
	},
	{
		name: "do something unknown", caught: check.Malformed, also: []check.Counter{
			check.IllegalTransitions, check.DuplicatesUnexplained, check.OwnersOverlapping, check.ChargedWrongly,
			check.StaleSettlesApplied,
		}, apply: func(v *view) bool {
			return v.edit(func(r *check.Record) bool { return r.Step != nil }, func(r *check.Record) { r.Step.Do = "sing" })
		},
	},
}

func (v *view) chargeFor(class check.Class) bool {
	r := v.pick(isStep(check.Publish))
	return v.after(r, like(r.Step, func(s *check.Step) { s.Do, s.Class = check.Charge, class }))
}
