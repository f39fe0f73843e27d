package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// strikes are the faults that happen at a time of their own.
var strikes = [...]struct {
	fault Fault
	do    func(w *World) bool // false: there was nothing to do it to
}{
	{DatabaseRestart, (*World).restartDatabase},
	{Standby, (*World).leadToStandby},
	{LeaseLost, (*World).takeLaneAway},
	{ClockForward, func(w *World) bool { return w.turnClock(w.span(time.Second, 2*w.plan.config.Lease)) }},
	{ClockBack, func(w *World) bool { return w.turnClock(-w.span(time.Second, w.plan.config.Lease)) }},
	{RelayKilled, (*World).killOne},
	{RelayPaused, (*World).pauseOne},
	{RelayStopped, (*World).stopOne},
	{TopicDown, func(w *World) bool { return w.breakTopics(w.plan.topics[w.rand.IntN(len(w.plan.topics))], false) }},
	{AllDown, func(w *World) bool { return w.breakTopics("", false) }},
	{QuotaSpent, func(w *World) bool { return w.breakTopics(w.plan.topics[w.rand.IntN(len(w.plan.topics))], true) }},
	{BadDeploy, (*World).deployBadly},
	{OperatorPaused, (*World).pauseSome},
	{Failover, (*World).fallBehind},
	{BackendKilled, (*World).killBackend},
}

// strike plans all of them, again and again.
func (w *World) strike() {
	for _, s := range strikes {
		if every := w.plan.every[s.fault]; every > 0 {
			w.again(every, s.fault, s.do)
		}
	}
}

func (w *World) again(every time.Duration, fault Fault, do func(w *World) bool) {
	w.after(w.soon(every), func() {
		if w.healed {
			return
		}
		if do(w) {
			w.count(fault)
		}
		w.again(every, fault, do)
	})
}

func (w *World) leadToStandby() bool {
	l := w.anyone()
	if l == nil || w.now < w.standbyEnd {
		return false
	}
	w.standbyFor, w.standbyEnd = l, w.now+w.soon(w.plan.config.Lease/2)
	return true
}

func (w *World) takeLaneAway() bool {
	lanes := w.store.Lanes()
	lane := lanes[w.rand.IntN(len(lanes))]
	if lane.Owner == (outbox.ID{}) {
		return false
	}
	w.store.ExpireLane(lane.Lane)
	w.record.jumped(lane.Lane, w.plan.config.Lease)
	w.record.moment(check.LeaseLost, "", outbox.ID{})
	return true
}

func (w *World) turnClock(by time.Duration) bool {
	w.offset += by
	if by > 0 {
		w.record.jumped(everyLane, by)
	}
	return true
}

// anyone picks a relay that runs.
func (w *World) anyone() *life {
	var list []*life
	for _, l := range w.lives {
		if !l.gone && !l.stopping && l.paused <= w.now {
			list = append(list, l)
		}
	}
	if len(list) == 0 {
		return nil
	}
	return list[w.rand.IntN(len(list))]
}

func (w *World) killOne() bool {
	l := w.anyone()
	if l == nil {
		return false
	}
	l.kill()
	return true
}

func (w *World) pauseOne() bool {
	l := w.anyone()
	if l == nil {
		return false
	}
	l.pause(w.plan.config.Lease + w.soon(w.plan.config.Lease/2))
	return true
}

func (w *World) stopOne() bool {
	l := w.anyone()
	if l == nil {
		return false
	}
	l.stop()
	return true
}

// breakTopics lets a topic, or all of them, be out of order for a while.
func (w *World) breakTopics(topic string, quota bool) bool {
	d := w.span(w.plan.config.Deadline, 3*w.plan.config.Lease)
	o := outage{until: w.now + d, hangs: w.chance(0.3) && !quota, quota: quota}
	kind := check.BrokerDown
	if quota {
		kind = check.Quota
		o.retryAfter = w.span(10*time.Millisecond, time.Second)
	}
	for _, name := range w.plan.topics {
		if topic != "" && name != topic {
			continue
		}
		if now := w.broker.topics[name]; now != nil && now.until > w.now {
			continue
		}
		mine := o
		w.broker.topics[name] = &mine
		// What the broker took before may still be acknowledged for a while.
		from := w.now + w.plan.config.Deadline + w.broker.latency
		w.queue.plan(mine.until, func() bool {
			if end := min(mine.until, w.now); from < end {
				w.record.fault(check.Fault{Kind: kind, Topic: name, From: at(from), To: at(end)})
			}
			return false
		})
	}
	return true
}

// deployBadly lets all events of a type break their contract for a while.
func (w *World) deployBadly() bool {
	k := &w.plan.kinds[w.rand.IntN(len(w.plan.kinds))]
	w.broker.broken[k.name] = w.now + w.span(time.Second, 2*w.plan.config.Lease)
	return true
}
