package check_test

import "github.com/posthaste-dev/posthaste/internal/check"

// relay does one thing with the first event of an aggregate.
func (r *run) relay(aggregate int) {
	p := r.queues[aggregate][0]
	lane := aggregate % lanes
	if p.event.Type == "newer" {
		r.park(aggregate)
		return
	}
	if r.rand.IntN(10) == 0 {
		r.renew()
	}
	switch r.rand.IntN(24) {
	case 0: // refused for now
		r.publish(p, lane)
		r.failPublish(p, lane, check.OfEvent)
		r.charge(p, lane, check.OfEvent)
		r.retry(p, lane)
	case 1: // accepted, and the answer never came
		r.publish(p, lane)
		r.deliver(p, 0)
		r.failPublish(p, lane, check.InDoubt)
		r.retry(p, lane)
	case 2: // the settle failed
		r.publish(p, lane)
		r.deliver(p, 0)
		r.event(p, lane, check.Step{Do: check.Ack})
		r.event(p, lane, check.Step{Do: check.Settle, Result: check.NotDone})
	case 3: // killed, before or after the broker took it
		r.publish(p, lane)
		if r.rand.IntN(2) == 0 {
			r.deliver(p, 0)
		}
		r.add(check.Record{
			Fault: &check.Fault{
				Kind: check.Kill, Relay: r.name(), From: r.now, To: r.now, First: r.arrivals + 1, Last: r.arrivals + 1,
			},
		})
		r.start()
	case 4:
		r.outage(p, lane)
	case 5:
		r.die(aggregate)
	case 6: // accepted by a broker that said no
		r.publish(p, lane)
		fault := &check.Fault{Kind: check.AckLost, ID: p.event.ID, From: r.now, To: r.now + 1, First: r.arrivals + 1}
		r.deliver(p, 0)
		fault.Last = r.arrivals + 1
		r.add(check.Record{Fault: fault})
		r.failPublish(p, lane, check.OfTopic)
	default:
		r.deliverOnce(aggregate)
	}
}

// event records a step about an event.
func (r *run) event(p *pending, lane int, s check.Step) {
	s.ID, s.Lane = p.event.ID, lane
	r.step(s)
}

func (r *run) publish(p *pending, lane int) {
	r.event(p, lane, check.Step{Do: check.Publish})
}

func (r *run) failPublish(p *pending, lane int, class check.Class) {
	r.event(p, lane, check.Step{Do: check.PublishFailed, Class: class})
}

func (r *run) charge(p *pending, lane int, class check.Class) {
	p.row.Attempts++
	r.event(p, lane, check.Step{Do: check.Charge, Class: class})
}

func (r *run) retry(p *pending, lane int) {
	r.to(p, check.Retrying)
	r.event(p, lane, check.Step{Do: check.Settle, Result: check.Applied, To: check.Retrying})
}

func (r *run) deliver(p *pending, request int64) {
	r.arrivals++
	r.effects[p.event.ID] = true
	r.add(check.Record{Delivery: &check.Delivery{
		Index: r.arrivals, ID: p.event.ID, Type: p.event.Type, Topic: p.event.Topic, Key: p.event.Key,
		Payload: p.event.Payload, Headers: p.event.Headers, Request: request,
	}})
}

// deliverOnce is how nearly all events go. Now and then somebody asks for a copy.
func (r *run) deliverOnce(aggregate int) {
	p, lane := r.queues[aggregate][0], aggregate%lanes
	r.publish(p, lane)
	r.deliver(p, 0)
	r.event(p, lane, check.Step{Do: check.Ack})
	r.to(p, check.Published)
	r.event(p, lane, check.Step{Do: check.Settle, Result: check.Applied, To: check.Published})
	r.queues[aggregate] = r.queues[aggregate][1:]
	if r.rand.IntN(20) == 0 {
		number := int64(len(r.asked) + 1)
		r.act(p, check.Redeliver)
		r.asked = append(r.asked, check.Request{Request: number, ID: p.event.ID, End: check.RequestDelivered})
		r.deliver(p, number)
	}
}

// outage fails a topic around one publish, which costs nobody anything.
func (r *run) outage(p *pending, lane int) {
	fault := &check.Fault{Kind: check.BrokerDown, Topic: p.event.Topic, From: r.tick(), First: r.arrivals + 1}
	r.publish(p, lane)
	r.failPublish(p, lane, []check.Class{check.OfTopic, check.InDoubt}[r.rand.IntN(2)])
	fault.To, fault.Last = r.tick(), r.arrivals+1
	r.add(check.Record{Fault: fault})
}

func (r *run) act(p *pending, verb check.Verb) {
	r.actions = append(r.actions, check.Action{ID: p.event.ID, Verb: verb, Actor: "ada", Next: r.arrivals + 1})
}

// die ends an event that will never be accepted, and lets an operator see to it.
func (r *run) die(aggregate int) {
	p, lane := r.queues[aggregate][0], aggregate%lanes
	r.publish(p, lane)
	class, reason := check.Terminal, "rejected"
	if r.arrivals%2 > 0 {
		class, reason = check.Broken, "invalid_payload"
	}
	r.failPublish(p, lane, class)
	blocking := r.rand.IntN(2) == 0
	state := check.Dead
	if blocking {
		state = check.DeadBlocking
	}
	r.to(p, state)
	r.event(p, lane, check.Step{Do: check.Settle, Result: check.Applied, To: state})
	r.letters = append(r.letters, check.Letter{
		ID: p.event.ID, Reason: reason, Attempts: p.row.Attempts, Blocking: blocking, Payload: p.event.Payload,
		Headers: p.event.Headers, Next: r.arrivals + 1,
	})
	if !blocking {
		r.queues[aggregate] = r.queues[aggregate][1:]
		return
	}
	r.hold(aggregate, 1)
	r.operate(aggregate)
}

// hold makes all events of the aggregate behind the first n wait.
func (r *run) hold(aggregate, n int) {
	for _, p := range r.queues[aggregate][n:] {
		if p.row.State == check.Ready {
			r.to(p, check.Waiting)
		}
	}
}

// operate decides about a dead event that blocks.
func (r *run) operate(aggregate int) {
	p := r.queues[aggregate][0]
	switch r.rand.IntN(4) {
	case 0: // nobody looks at it
		r.queues[aggregate] = nil
	case 1:
		r.act(p, check.Redrive)
		r.to(p, check.Retrying)
		p.row.Attempts = 0
	case 2:
		r.act(p, check.Skip)
		r.to(p, check.Dead)
		r.queues[aggregate] = r.queues[aggregate][1:]
	default:
		r.act(p, check.Discard)
		r.to(p, check.Discarded)
		r.queues[aggregate] = r.queues[aggregate][1:]
	}
}

// park sets an event aside whose type nobody knows; what comes behind it waits, until the end.
func (r *run) park(aggregate int) {
	p := r.queues[aggregate][0]
	if p.row.State == check.Ready || p.row.State == check.Waiting {
		r.to(p, check.Parked)
	}
	r.hold(aggregate, 1)
	r.queues[aggregate] = nil
}
