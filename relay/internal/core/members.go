package core

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// membership is what is known about the fleet, and about this relay in it.
type membership struct {
	owner      Owner // this start of the relay; zero: it has to start anew
	registered bool
	made       string        // the incarnation that registered it
	since      time.Duration // the lease counts from before the last beat was sent that was answered
	server     string        // the incarnation that answered it
	number     int64         // of the last beat that was sent
	kept       int64         // of the last that was answered
	done       int64         // beats below it are deleted
	former     []former      // owners that this relay was, and perhaps is in the database still

	gate    gate
	lookAt  time.Duration // the next look at the fleet
	beatAt  time.Duration // the next that is a beat as well
	ending  gate
	acquire gate
	opening gate
	release gate
	taking  outbox.ID   // the token of the acquisition under way
	unknown []outbox.ID // tokens of acquisitions whose answer never came
	strays  []Progress  // lanes that are this relay's, and that it does not know of
	flying  []*lane     // given up with something in flight

	view     HeartbeatAnswer
	met      map[outbox.ID][]string // the types that the others know
	unshared map[string]bool        // types that this relay knows, and not all others do
	somebody map[string]bool        // types that some relay knows
	spare    bool                   // there are as many relays as lanes, without this one
	seen     bool
	expired  bool          // somebody may be ended
	metAt    time.Duration // when the last heartbeat that was answered was sent
	away     time.Duration // until then, others that seem dead may only have been out of touch, as this relay was
}

// former is an owner that was given up, with its lanes.
type former struct {
	Owner
	lanes []*lane
	at    time.Duration
}

// keepMembership says that this relay is alive, keeps its lanes, and takes and gives lanes so that everybody
// has a fair share.
func (c *Core) keepMembership(now time.Duration) {
	c.giveBack(now)
	c.endExpired(now)
	c.takeLanes(now)
	m := &c.members
	if c.left || c.leaving() || c.shut(&m.gate, now) {
		return
	}
	if now < min(m.lookAt, m.beatAt) {
		c.wakeAt(min(m.lookAt, m.beatAt))
		return
	}
	if m.owner == (Owner{}) {
		m.owner = Owner{Relay: c.newToken(), Token: c.newToken()}
		m.number, m.kept, m.done = 0, 0, 0
	}
	if c.careful {
		c.reviewCare(now)
	}
	m.lookAt = now + c.jitter(min(time.Second, c.config.Lease/10))
	beat := c.heartbeat(now)
	lanes := slices.Clone(c.sorted)
	begin(c, OpHeartbeat, &m.gate,
		func(ctx context.Context, store Store) (HeartbeatAnswer, error) { return store.Heartbeat(ctx, beat) },
		func(told time.Duration, answer HeartbeatAnswer, err error) {
			switch {
			case m.owner != beat.Owner: // it was given up meanwhile
			case err != nil:
				m.lookAt, m.beatAt = m.gate.retryAt, min(m.beatAt, m.gate.retryAt)
			case m.registered && answer.Incarnation != m.made:
				c.abandon(told, "the server was restarted, or is another one")
			case answer.Ended:
				c.wasEnded(told)
			default:
				if !m.registered {
					m.registered, m.made = true, answer.Incarnation
				}
				c.looked(now, told, &beat, lanes, &answer)
			}
		})
}

// heartbeat is a look at the fleet, and every third of the lease a beat: a sign of life, with what the next owner of
// each lane needs to know. Between those, what is calm after a crash is written down at once, because that ends the
// count of crashes.
func (c *Core) heartbeat(now time.Duration) Heartbeat {
	m := &c.members
	beat := Heartbeat{Owner: m.owner, Lease: c.config.Lease, Incarnation: c.fence.incarnation}
	for _, peer := range m.view.Relays {
		if m.met[peer.ID] != nil {
			beat.Met = append(beat.Met, peer.ID)
		}
	}
	due := now >= m.beatAt
	if !m.registered {
		due = true
		beat.Register = c.registration()
	}
	for _, l := range c.sorted {
		due = due || !l.releasing && l.crashed && !l.calm && c.proven(now, l)
	}
	if !due {
		return beat
	}
	m.beatAt = now + c.config.Lease/3
	m.number++
	beat.Number, beat.From, beat.Below = m.number, m.done, m.kept
	for _, l := range c.sorted {
		beat.Lanes = append(beat.Lanes, c.progress(now, l))
	}
	return beat
}

// registration is what others are told about this relay.
func (c *Core) registration() *Registration {
	who := &Registration{Name: c.config.Name, Version: c.config.Version, Types: c.config.Routes.Types()}
	for _, eventType := range who.Types {
		route, _ := c.config.Routes.Route(eventType)
		who.Topics = append(who.Topics, route.Topic)
	}
	return who
}

// progress says what is to be written down about a lane.
func (c *Core) progress(now time.Duration, l *lane) Progress {
	l.calm = l.calm || c.proven(now, l)
	progress := Progress{Tenure: l.tenure(), Calm: l.calm, Needs: c.needs(l)}
	if l.server == c.fence.incarnation { // else it is not known what is true there
		progress.Floor, progress.Swept = c.floorOf(l), l.swept
	}
	return progress
}

// looked takes in the answer to a heartbeat that was sent then, when this relay had these lanes.
func (c *Core) looked(sent, told time.Duration, beat *Heartbeat, lanes []*lane, answer *HeartbeatAnswer) {
	m := &c.members
	if c.fence.known && answer.Incarnation != c.fence.incarnation {
		c.forgetFence() // the next one comes at once
	}
	c.obey(told, answer.Pauses) // before the first lane is taken
	c.keepTo(told, answer.Limits)
	c.redelivery.requested = answer.Requested
	c.forgetTopics()
	if sent-m.metAt >= c.config.Lease/2 && m.view.Relays != nil {
		m.away = told + c.config.Lease
	}
	m.view, m.seen, m.metAt = *answer, true, sent
	c.meet(told, answer.Relays, beat.Number > 0)
	c.findStrays()
	for _, l := range lanes {
		if !l.lost && !l.releasing && l.server == answer.Incarnation && !slices.Contains(answer.Held, l.number) {
			c.lose(l, "a look found the lane taken")
		}
	}
	if beat.Number > 0 {
		c.beaten(sent, beat, answer.Incarnation)
	}
	stalled := c.stalled
	c.stalled = nil
	for _, line := range stalled {
		line.queued = false
		c.run(line)
	}
}

// findStrays gives back lanes that are this relay's in the database, and that it does not know of: an acquisition that
// was given up was done later. Nobody else could take them while it lives.
func (c *Core) findStrays() {
	m := &c.members
	m.strays = nil
	for _, view := range m.view.Lanes {
		if view.Owner != m.owner.Relay || view.Token == m.taking || slices.Contains(m.unknown, view.Token) {
			continue
		}
		if l := c.lanes[view.Lane]; l == nil || l.token != view.Token {
			m.strays = append(m.strays, Progress{Tenure: Tenure{Lane: view.Lane, Token: view.Token}, Needs: view.Needs})
		}
	}
}

// meet remembers what the others know. A relay that starts anew has another id, so it is told once. One that finds its
// own lease expired says first that it lives: it was away, or the clock has jumped, for others as well.
func (c *Core) meet(now time.Duration, peers []Peer, beaten bool) {
	m := &c.members
	met := make(map[outbox.ID][]string, len(peers))
	m.expired = false
	for i := range peers {
		peer := &peers[i]
		m.expired = m.expired || peer.Expired && peer.ID != m.owner.Relay
		if peer.KnownTypes == nil {
			peer.KnownTypes = m.met[peer.ID]
		}
		if peer.KnownTypes == nil {
			peer.KnownTypes = []string{}
		}
		met[peer.ID] = peer.KnownTypes
	}
	m.met = met
	if slices.ContainsFunc(peers, func(p Peer) bool { return p.Expired && p.ID == m.owner.Relay }) && !beaten {
		m.beatAt, m.away, m.expired = now, now+c.config.Lease, false
	}
	m.view.Relays = slices.DeleteFunc(peers, func(p Peer) bool { return p.Expired && p.ID != m.owner.Relay })
	m.unshared = unshared(c.config.Routes.Types(), m.view.Relays)
	m.somebody = map[string]bool{}
	for i := range m.view.Relays {
		for _, eventType := range m.view.Relays[i].KnownTypes {
			m.somebody[eventType] = true
		}
	}
}

// beaten takes in that a beat was written down that was sent then.
func (c *Core) beaten(sent time.Duration, beat *Heartbeat, server string) {
	m := &c.members
	m.since, m.server = sent, server
	m.done, m.kept = beat.Below, beat.Number
	for _, progress := range beat.Lanes {
		l := c.lanes[progress.Lane]
		if l == nil || l.token != progress.Token || l.releasing {
			continue
		}
		if progress.Calm && c.tooEarly(sent, l) == 0 {
			l.crashed = false
		}
		if l.server == server { // another one has not written it
			l.floor = max(l.floor, progress.Floor)
		}
	}
	for _, l := range c.sorted {
		if !l.releasing && l.server == server {
			c.config.Observe(Step{Do: DidRenew, Lane: l.number, Token: l.token, Since: sent})
		}
	}
}

// wasEnded gives up all lanes: others have found this relay dead. It starts anew.
func (c *Core) wasEnded(now time.Duration) {
	c.loseAll("the relay was ended by another")
	c.startAnew(now)
}

// abandon gives up all lanes, though they may be this relay's in the database still, and the owner that it was: what is
// written there may be older than what is known here.
func (c *Core) abandon(now time.Duration, why string) {
	m := &c.members
	if !m.registered {
		return
	}
	m.former = append(m.former, former{Owner: m.owner, lanes: slices.Clone(c.sorted), at: now})
	c.loseAll(why)
	c.startAnew(now)
}

// startAnew forgets the owner that this relay was.
func (c *Core) startAnew(now time.Duration) {
	m := &c.members
	m.owner, m.registered, m.unknown, m.strays, m.seen = Owner{}, false, nil, nil, false
	m.lookAt = now
	for _, r := range c.ordered {
		r.saved = false
	}
}

// endedAtOnce is how many dead relays are ended in one transaction.
const endedAtOnce = 8

// endExpired ends relays that have not beaten for a lease, which frees their lanes.
func (c *Core) endExpired(now time.Duration) {
	m := &c.members
	if c.stopping || !m.registered || !m.expired || c.shut(&m.ending, now) {
		return
	}
	m.expired = false
	end := EndExpired{Relay: m.owner.Relay, Max: endedAtOnce, Away: now < m.away}
	begin(c, OpEndExpired, &m.ending,
		func(ctx context.Context, store Store) ([]outbox.ID, error) { return store.EndExpired(ctx, end) },
		func(now time.Duration, ended []outbox.ID, err error) {
			if err == nil && len(ended) > 0 {
				m.lookAt = now
			}
		})
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
	take := Acquire{Owner: m.owner, Tenure: c.newToken(), Lanes: wanted, Max: len(wanted)}
	m.taking = take.Tenure
	begin(c, OpAcquire, &m.acquire,
		func(ctx context.Context, store Store) (AcquireAnswer, error) { return store.Acquire(ctx, take) },
		func(told time.Duration, answer AcquireAnswer, err error) {
			m.taking = outbox.ID{}
			switch {
			case m.owner != take.Owner: // what it has taken was given back, or will be
			case err != nil, told >= m.since+c.config.Lease:
				// It may have taken lanes, or has no time left for them: give back whatever has this token.
				m.unknown = append(m.unknown, take.Tenure)
			default:
				for _, a := range answer.Lanes {
					c.acquired(told, a, take.Tenure, answer.Incarnation).wanted = needed[a.Lane]
				}
			}
		})
}

// share decides which lanes to take, and drains those to give away. A lane with parked types belongs to the
// relays that know most of them; all others are shared out evenly.
func (c *Core) share(now time.Duration) (wanted []int16) {
	view := &c.members.view
	peers := slices.Clone(view.Relays)
	slices.SortFunc(peers, func(a, b Peer) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	me := slices.IndexFunc(peers, func(p Peer) bool { return p.ID == c.members.owner.Relay })
	if me < 0 {
		return nil
	}
	fair := len(view.Lanes) / len(peers)
	if me < len(view.Lanes)%len(peers) {
		fair++
	}
	c.tellSpare(fair == 0)
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
		if lane.Owner != (outbox.ID{}) || c.lanes[lane.Lane] != nil || c.isFlying(now, lane.Lane) {
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

// tellSpare tells people that there is no lane for this relay, once.
func (c *Core) tellSpare(spare bool) {
	m := &c.members
	if spare && !m.spare {
		c.alarm(0, fmt.Sprintf("%d relays share %d lanes: this one has none, and waits for another to end",
			len(m.view.Relays), len(m.view.Lanes)))
	}
	m.spare = spare
}

// isFlying tells whether this relay has something in flight of a lane that it had before: taken anew, it would overtake
// itself.
func (c *Core) isFlying(now time.Duration, number int16) bool {
	m := &c.members
	m.flying = slices.DeleteFunc(m.flying, func(l *lane) bool {
		return l.inFlight == 0 || now >= l.lostAt+c.config.Lease
	})
	return slices.ContainsFunc(m.flying, func(l *lane) bool { return l.number == number })
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

// giveBack releases lanes that are drained, and ends owners that this relay is no more.
func (c *Core) giveBack(now time.Duration) {
	m := &c.members
	if c.shut(&m.release, now) {
		return
	}
	if c.giveUp(now) {
		return
	}
	give := Release{
		Owner: m.owner, Incarnation: c.fence.incarnation, Lanes: m.strays, Tokens: m.unknown, End: c.leaving(),
	}
	var lanes []*lane
	for _, l := range c.sorted {
		if l.draining && l.inFlight == 0 && l.unwritten == 0 {
			if !l.releasing { // from here on it is not touched, whether or not the answer comes
				l.releasing = true
				c.config.Observe(Step{Do: DidRelease, Lane: l.number, Token: l.token})
			}
			lanes = append(lanes, l)
			give.Lanes = append(give.Lanes, c.progress(now, l))
		}
	}
	if give.End && m.owner == (Owner{}) {
		c.left = true
		return
	}
	if len(give.Lanes) == 0 && len(give.Tokens) == 0 && !give.End {
		return
	}
	m.unknown, m.strays = nil, nil // what is a stray still, the next look shows again
	begin(c, OpRelease, &m.release,
		func(ctx context.Context, store Store) (nothing, error) { return nothing{}, store.Release(ctx, give) },
		func(_ time.Duration, _ nothing, err error) {
			if err != nil {
				if m.owner == give.Owner {
					m.unknown = append(m.unknown, give.Tokens...)
				}
				return
			}
			c.left = c.left || give.End
			for _, l := range lanes {
				if !l.lost {
					c.leave(l)
				}
			}
		})
}

// leaving tells that this relay has stopped, and has nothing any more that others could be waiting for.
func (c *Core) leaving() bool {
	m := &c.members
	return c.stopping && !c.left && len(c.lanes)+len(m.unknown)+len(m.former) == 0 && !m.gate.busy && !m.acquire.busy
}

// giveUp ends an owner that this relay is no more, once nothing of it is in flight: another owner of its lanes could
// else overtake what it has sent.
func (c *Core) giveUp(now time.Duration) bool {
	m := &c.members
	at := slices.IndexFunc(m.former, func(f former) bool {
		return now >= f.at+c.config.Lease || !slices.ContainsFunc(f.lanes, func(l *lane) bool { return l.inFlight > 0 })
	})
	if at < 0 {
		for _, f := range m.former {
			c.wakeAt(f.at + c.config.Lease)
		}
		return false
	}
	gone := m.former[at]
	give := Release{Owner: gone.Owner, End: true}
	for _, l := range gone.lanes { // how far they were stands in its beats, if there still is that server
		give.Lanes = append(give.Lanes, Progress{Tenure: l.tenure(), Calm: l.calm, Needs: l.needed})
		if !l.releasing {
			l.releasing = true
			c.config.Observe(Step{Do: DidRelease, Lane: l.number, Token: l.token})
		}
	}
	begin(c, OpRelease, &m.release,
		func(ctx context.Context, store Store) (nothing, error) { return nothing{}, store.Release(ctx, give) },
		func(now time.Duration, _ nothing, err error) {
			if err == nil {
				m.former = slices.DeleteFunc(m.former, func(f former) bool { return f.Owner == give.Owner })
				m.lookAt = now
			}
		})
	return true
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
	c.loseAll("given up at the end of the drain")
	return true
}
