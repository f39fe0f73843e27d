package core

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// membership is what is known about the fleet.
type membership struct {
	gate     gate
	beatAt   time.Duration // the next heartbeat
	renewAt  time.Duration // the next that renews the lanes as well
	acquire  gate
	opening  gate
	release  gate
	unknown  []outbox.ID // tokens of acquisitions whose answer never came
	lost     []*lane     // given up, and perhaps still this relay's in the database
	view     HeartbeatAnswer
	unshared map[string]bool // types that this relay knows, and not all others do
	seen     bool
	metAt    time.Duration // when the last heartbeat that was answered was sent
	away     time.Duration // until then, others that seem dead may only have been out of touch, as this relay was
}

// keepMembership says that this relay is alive, keeps its lanes, and takes and gives lanes so that everybody
// has a fair share.
func (c *Core) keepMembership(now time.Duration) {
	c.giveBack(now)
	c.takeLanes(now)
	m := &c.members
	if c.left || c.shut(&m.gate, now) {
		return
	}
	leaving := c.stopping && len(c.lanes) == 0 && !m.release.busy && !m.acquire.busy && len(m.unknown)+len(m.lost) == 0
	if now < min(m.beatAt, m.renewAt) && !leaving {
		c.wakeAt(min(m.beatAt, m.renewAt))
		return
	}
	beat := Heartbeat{
		Relay: c.config.Relay, Name: c.config.Name, Version: c.config.Version,
		KnownTypes: c.config.Routes.Types(), Lease: c.config.Lease, Incarnation: c.fence.incarnation,
	}
	if leaving {
		beat.Lease = 0
	}
	m.beatAt = now + c.jitter(min(time.Second, c.config.Lease/10))
	var renewed []*lane
	renewed, beat.Lanes = c.renewals(now)
	if c.careful {
		c.reviewCare(now)
	}
	begin(c, OpHeartbeat, &m.gate,
		func(ctx context.Context, store Store) (HeartbeatAnswer, error) { return store.Heartbeat(ctx, beat) },
		func(told time.Duration, answer HeartbeatAnswer, err error) {
			if err != nil {
				m.beatAt, m.renewAt = m.gate.retryAt, min(m.renewAt, m.gate.retryAt)
				return
			}
			c.left = leaving
			if c.fence.known && answer.Incarnation != c.fence.incarnation {
				c.forgetFence() // the next one comes at once
			}
			c.obey(told, answer.Pauses) // before the first lane is taken
			if now-m.metAt >= c.config.Lease/2 && m.view.Relays != nil {
				m.away = told + c.config.Lease
			}
			m.view, m.seen, m.metAt = answer, true, now
			m.unshared = unshared(beat.KnownTypes, answer.Relays)
			for i, l := range renewed {
				c.renewed(now, l, beat.Lanes[i], &answer)
			}
			stalled := c.stalled
			c.stalled = nil
			for _, line := range stalled {
				line.queued = false
				c.run(line)
			}
		})
}

// renewals lists the lanes to renew: all of them, every third of the lease, and those between that are calm
// after a crash, because to write that down ends the count of crashes.
func (c *Core) renewals(now time.Duration) (lanes []*lane, renewals []Renewal) {
	all := now >= c.members.renewAt
	if all {
		c.members.renewAt = now + c.config.Lease/3
	}
	for _, l := range c.sorted {
		if !l.releasing && (all || l.crashed && c.proven(now, l)) {
			lanes = append(lanes, l)
			renewals = append(renewals, c.renewal(now, l))
		}
	}
	return lanes, renewals
}

// renewal says what is to be written down about a lane.
func (c *Core) renewal(now time.Duration, l *lane) Renewal {
	renewal := Renewal{Tenure: l.tenure(), Calm: c.proven(now, l), Needs: c.needs(l)}
	if l.server == c.fence.incarnation { // else it is not known what is true there
		renewal.Floor = c.floorOf(l)
	}
	return renewal
}

// renewed takes in the answer to a renewal that was sent then.
func (c *Core) renewed(sent time.Duration, l *lane, renewal Renewal, answer *HeartbeatAnswer) {
	switch {
	case l.lost || l.releasing:
	case !slices.Contains(answer.Renewed, l.number):
		c.lose(l, "a renewal found the lane taken")
	default:
		if renewal.Calm && c.tooEarly(sent, l) == 0 {
			l.crashed = false
		}
		l.since = sent
		if l.server == answer.Incarnation { // another one has not written it
			l.floor = max(l.floor, renewal.Floor)
		}
		c.config.Observe(Step{Do: DidRenew, Lane: l.number, Token: l.token, Since: sent})
	}
}

// takeLanes acquires free lanes and gives away those that others should have.
func (c *Core) takeLanes(now time.Duration) {
	m := &c.members
	if c.stopping || !m.seen || c.shut(&m.acquire, now) {
		return
	}
	m.seen = false
	wanted := c.share(now)
	if len(wanted) == 0 {
		return
	}
	needed := map[int16]bool{}
	for _, lane := range m.view.Lanes {
		needed[lane.Lane] = len(lane.Needs) > 0
	}
	take := Acquire{
		Relay: c.config.Relay, Token: c.newToken(), Lanes: wanted, Max: len(wanted), Lease: c.config.Lease,
		Away: now < m.away,
	}
	begin(c, OpAcquire, &m.acquire,
		func(ctx context.Context, store Store) (AcquireAnswer, error) { return store.Acquire(ctx, take) },
		func(told time.Duration, answer AcquireAnswer, err error) {
			if err != nil { // it may have taken lanes: give back whatever has this token
				m.unknown = append(m.unknown, take.Token)
				return
			}
			for _, a := range answer.Lanes {
				c.acquired(now, told, a, take.Token, answer.Incarnation).wanted = needed[a.Lane]
			}
		})
}

// share decides which lanes to take, and drains those to give away. A lane with parked types belongs to the
// relays that know most of them; all others are shared out evenly.
func (c *Core) share(now time.Duration) (wanted []int16) {
	view := &c.members.view
	peers := slices.Clone(view.Relays)
	slices.SortFunc(peers, func(a, b Peer) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	me := slices.IndexFunc(peers, func(p Peer) bool { return p.ID == c.config.Relay })
	if me < 0 {
		return nil
	}
	fair := len(view.Lanes) / len(peers)
	if me < len(view.Lanes)%len(peers) {
		fair++
	}
	kept := 0
	var surplus []*lane // that may go to anybody
	for _, l := range c.sorted {
		if l.draining {
			continue
		}
		mine, everybodys := suits(peers, me, c.needs(l))
		if !mine && now-l.acquiredAt >= c.config.MinStay {
			c.drain(l)
			continue
		}
		kept++
		if everybodys && !(l.wanted && (now-l.acquiredAt < c.config.MinStay || l.isBusy())) {
			surplus = append(surplus, l)
		}
	}
	for ; kept > fair && len(surplus) > 0; kept-- {
		c.drain(surplus[len(surplus)-1])
		surplus = surplus[:len(surplus)-1]
	}
	for _, lane := range view.Lanes {
		if !lane.Free || c.lanes[lane.Lane] != nil {
			continue
		}
		mine, everybodys := suits(peers, me, lane.Needs)
		if mine && (kept < fair || !everybodys) {
			wanted = append(wanted, lane.Lane)
			kept++
		}
	}
	return wanted
}

// isBusy tells whether something that is held will be sent.
func (l *lane) isBusy() bool {
	for key, h := range l.holds {
		if key.topic != "" && (h.due != never || h.changes > 0 || h.asking) {
			return true
		}
	}
	return false
}

// suits tells whether no peer knows more of the types than this relay, and whether all know as many.
func suits(peers []Peer, me int, needs []string) (mine, everybodys bool) {
	if len(needs) == 0 {
		return true, true
	}
	mine, everybodys = true, true
	own := knows(&peers[me], needs)
	for i := range peers {
		other := knows(&peers[i], needs)
		mine = mine && other <= own
		everybodys = everybodys && other == own
	}
	return mine, everybodys
}

func knows(peer *Peer, needs []string) (known int) {
	for _, eventType := range needs {
		if slices.Contains(peer.KnownTypes, eventType) {
			known++
		}
	}
	return known
}

// unshared lists those of the types that not every peer knows.
func unshared(types []string, peers []Peer) map[string]bool {
	found := map[string]bool{}
	for i := range peers {
		known := make(map[string]bool, len(peers[i].KnownTypes))
		for _, eventType := range peers[i].KnownTypes {
			known[eventType] = true
		}
		for _, eventType := range types {
			if !known[eventType] {
				found[eventType] = true
			}
		}
	}
	return found
}

// giveBack releases lanes that are drained.
func (c *Core) giveBack(now time.Duration) {
	m := &c.members
	if c.shut(&m.release, now) {
		return
	}
	give := Release{Incarnation: c.fence.incarnation}
	var lanes []*lane
	for _, l := range c.sorted {
		if l.draining && l.inFlight == 0 && l.unwritten == 0 {
			if !l.releasing { // from here on it is not touched, whether or not the answer comes
				l.releasing = true
				c.config.Observe(Step{Do: DidRelease, Lane: l.number, Token: l.token})
			}
			lanes = append(lanes, l)
			give.Lanes = append(give.Lanes, c.renewal(now, l))
		}
	}
	give.Tokens = m.unknown
	m.lost = slices.DeleteFunc(m.lost, func(l *lane) bool {
		if l.inFlight == 0 { // else another owner could overtake what this one has sent
			// its floor is written already, if there still is that server
			give.Lanes = append(give.Lanes, Renewal{Tenure: l.tenure(), Needs: l.needed})
			c.config.Observe(Step{Do: DidRelease, Lane: l.number, Token: l.token})
		}
		return l.inFlight == 0 || now >= l.since+c.config.Lease
	})
	if len(give.Lanes) == 0 && len(give.Tokens) == 0 {
		return
	}
	m.unknown = nil
	begin(c, OpRelease, &m.release,
		func(ctx context.Context, store Store) (nothing, error) { return nothing{}, store.Release(ctx, give) },
		func(_ time.Duration, _ nothing, err error) {
			if err != nil {
				m.unknown = append(m.unknown, give.Tokens...)
				return
			}
			for _, l := range lanes {
				if !l.lost {
					c.leave(l)
				}
			}
		})
}

// stopped tells whether a stop is complete, or has taken too long. What is not given back then is free when its
// lease ends, and a publish in flight has ended by then.
func (c *Core) stopped(now time.Duration) bool {
	if c.left {
		return true
	}
	if now < c.stopBy {
		c.wakeAt(c.stopBy)
		return false
	}
	for _, l := range slices.Clone(c.sorted) {
		c.lose(l, "given up at the end of the drain")
	}
	return true
}
