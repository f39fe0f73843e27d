package core

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// lane is one tenure of a lane: won again, it is another one.
type lane struct {
	number     int16
	token      outbox.ID
	since      time.Duration // the lease counts from before its last renewal was sent
	acquiredAt time.Duration
	wanted     bool     // it was taken for the types parked in it
	needed     []string // what it needed when it was given up
	crashed    bool     // the owner before did not give it back
	suspect    outbox.ID
	careful    bool      // relays keep dying with it: one event at a time
	noted      outbox.ID // the event that is sent alone
	blamed     outbox.ID // the one that owners before have died with
	lost       bool
	opened     bool // what is held is known: ready rows may be read
	draining   bool // to be given back as soon as nothing is in flight
	releasing  bool

	swept      int64 // numbers up to here were looked at once more, from sweptFrom on
	sweptFrom  int64
	floor      int64 // as the database has it: everything at or below is settled or held
	w          int64 // nothing can still appear at or below it, and all of it has been read
	c          int64 // reads begin here, as long as the reader's excepted writers are open
	generation int   // changes when w or c went back: what older reads have shown does not move them
	more       int   // rows to read beyond those in memory

	rows      map[int64]*row // in memory, by number
	sent      map[int64]bool // handed to the broker by this relay, and not settled
	inherited int64          // up to here the owner before may have sent events: it crashed
	unsettled int            // ready rows among them
	inFlight  int            // publishes
	undecided int            // fates that are not written down
	holds     map[lineKey]*hold
}

func (l *lane) tenure() Tenure { return Tenure{Lane: l.number, Token: l.token} }

func (l *lane) remember(r *row) {
	l.rows[r.Seq] = r
	if !r.held {
		l.unsettled++
	}
}

// unremember takes a row out that is not settled.
func (l *lane) unremember(r *row) {
	if l.rows[r.Seq] == r {
		delete(l.rows, r.Seq)
		if !r.held {
			l.unsettled--
		}
	}
}

// forget takes a settled row out.
func (l *lane) forget(r *row) {
	if l.rows[r.Seq] == r {
		delete(l.rows, r.Seq)
	}
}

// isNoted tells whether the database has this event noted. One that owners have died with stays there until it
// is settled, whatever else is noted.
func (l *lane) isNoted(id outbox.ID) bool {
	if l.blamed != (outbox.ID{}) {
		return l.blamed == id
	}
	return l.noted == id
}

// isSuspect tells whether an event has been the noted one in so many crashes that it must be the cause.
func (l *lane) isSuspect(id outbox.ID) bool { return l.suspect == id && id != outbox.ID{} }

// membership is what is known about the fleet.
type membership struct {
	gate    gate
	beatAt  time.Duration // the next heartbeat
	renewAt time.Duration // the next that renews the lanes as well
	acquire gate
	opening gate
	release gate
	unknown []outbox.ID // tokens of acquisitions whose answer never came
	lost    []*lane     // given up, and perhaps still this relay's in the database
	view    HeartbeatAnswer
	seen    bool
}

// The crashes in a row from which on a lane's events are sent one at a time, and those of a noted event
// from which on it is taken for their cause.
const (
	crashesToCare       = 3
	crashesToQuarantine = 3
)

// mayPublish tells whether a publish that begins now ends while the lane is certainly held.
func (c *Core) mayPublish(l *lane, now time.Duration) bool {
	return !l.lost && now+c.config.Deadline+c.config.Margin < l.since+c.config.Lease
}

// forgetExpired gives up lanes that another relay may have by now.
func (c *Core) forgetExpired(now time.Duration) {
	next := never
	for i := 0; i < len(c.sorted); {
		if l := c.sorted[i]; now >= l.since+c.config.Lease {
			c.lose(l, "the lease has expired") // takes it out of the list
		} else {
			next = min(next, l.since+c.config.Lease)
			i++
		}
	}
	c.wakeAt(next)
}

// lose gives up a lane that is, or may be, another relay's. What is in flight cannot be called back; its
// answers are ignored.
func (c *Core) lose(l *lane, why string) {
	if l.lost {
		return
	}
	c.config.Observe(Step{Do: DidLose, Lane: l.number, Token: l.token, Detail: why})
	l.needed = l.needsOf()
	c.leave(l)
	c.members.lost = append(c.members.lost, l)
}

// leave forgets everything about a lane.
func (c *Core) leave(l *lane) {
	l.lost = true
	delete(c.lanes, l.number)
	c.sorted = slices.DeleteFunc(c.sorted, func(other *lane) bool { return other == l })
	for _, r := range l.rows {
		if r.done || r.forgotten {
			continue
		}
		c.unsettled--
		c.bytes -= r.Bytes()
		r.forgotten = true
		if r.line != nil && !r.line.flying(r) {
			c.unqueue(r)
		}
	}
	l.rows, l.holds = nil, nil
	c.settling.pending = slices.DeleteFunc(c.settling.pending, func(f fate) bool { return f.row.lane == l })
	for _, r := range c.ordered {
		r.resume = slices.DeleteFunc(r.resume, func(at resume) bool { return at.lane == l })
	}
	if c.careful && len(c.sorted) == 0 {
		c.careful = false
	}
}

// progressed tells whether whatever killed the owner before is behind: the floor has moved, and every held
// event that was due has been tried. Those do not keep the floor down. Types that are not known here cannot be
// tried.
func (c *Core) progressed(now time.Duration, l *lane) bool {
	if !l.opened || c.floorOf(l) <= l.floor {
		return false
	}
	if c.survived(now, l) {
		return true
	}
	for key, h := range l.holds {
		if key.topic == "" || h.due <= now || h.asking || h.changes > 0 || c.lines[key] != nil {
			return false
		}
	}
	return true
}

// survived tells that this relay has held the lane for so long that nothing in it can be what killed the
// others, even if something holds the floor: a topic that is down, a type that nobody knows.
func (c *Core) survived(now time.Duration, l *lane) bool { return now-l.acquiredAt >= 2*c.config.Lease }

// reviewCare ends the one-at-a-time mode of lanes whose floor has moved: whatever killed the relays is
// behind them.
func (c *Core) reviewCare(now time.Duration) {
	c.careful = false
	for _, l := range c.sorted {
		l.careful = l.careful && !c.progressed(now, l) && !c.survived(now, l)
		c.careful = c.careful || l.careful
	}
}

// unqueue takes a row that is not in flight out of its line.
func (c *Core) unqueue(r *row) {
	if l := r.line; l != nil {
		r.line = nil
		l.rows = slices.DeleteFunc(l.rows, func(other *row) bool { return other == r })
		c.retire(l)
	}
}

// flying tells whether a row of the line is in flight.
func (l *line) flying(r *row) bool { return slices.Contains(l.rows[:l.inFlight], r) }

// drain stops a lane from reading and publishing more, to give it back.
func (c *Core) drain(l *lane) {
	if l.draining {
		return
	}
	l.draining = true
	// What a read under way brings is not taken any more, so it must not move the bounds, nor the floor.
	l.generation++
	for _, r := range c.ordered {
		if at := r.place(l); at != nil {
			at.goneBack()
		}
	}
	for _, r := range l.rows {
		if r.decided || r.forgotten || r.line != nil && r.line.flying(r) {
			continue
		}
		c.unqueue(r)
		c.forget(r)
	}
}

// floorOf is the number at and below which everything of a lane is settled or held.
func (c *Core) floorOf(l *lane) int64 {
	floor := l.w
	for seq, r := range l.rows {
		if !r.held && !r.done {
			floor = min(floor, seq-1)
		}
	}
	for _, r := range c.ordered {
		for i := range r.resume {
			if r.resume[i].lane == l {
				floor = min(floor, r.resume[i].from)
			}
		}
	}
	return max(floor, l.floor)
}

// needsOf lists the types parked in a lane because this relay does not know them.
func (l *lane) needsOf() []string {
	var needs []string
	for key, h := range l.holds {
		if key.topic == "" {
			needs = append(needs, h.types...)
		}
	}
	slices.Sort(needs)
	return slices.Compact(needs)
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
		KnownTypes: c.config.Routes.Types(), Lease: c.config.Lease,
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
		func(_ time.Duration, answer HeartbeatAnswer, err error) {
			if err != nil {
				m.beatAt, m.renewAt = m.gate.retryAt, min(m.renewAt, m.gate.retryAt)
				return
			}
			c.left = leaving
			m.view, m.seen = answer, true
			for i, l := range renewed {
				c.renewed(now, l, beat.Lanes[i].Floor, answer.Renewed)
			}
			stalled := c.stalled
			c.stalled = nil
			for _, line := range stalled {
				line.queued = false
				c.run(line)
			}
		})
}

// renewals lists the lanes to renew: all of them, every third of the lease, and those between that have made
// progress after a crash, because to write that down ends the count of crashes.
func (c *Core) renewals(now time.Duration) (lanes []*lane, renewals []Renewal) {
	all := now >= c.members.renewAt
	if all {
		c.members.renewAt = now + c.config.Lease/3
	}
	for _, l := range c.sorted {
		if !l.releasing && (all || l.crashed && c.progressed(now, l)) {
			lanes = append(lanes, l)
			renewals = append(renewals, c.renewal(now, l))
		}
	}
	return lanes, renewals
}

// renewal says what is to be written down about a lane. A floor that rises ends the count of crashes, so after
// one it stays where it is until there is progress.
func (c *Core) renewal(now time.Duration, l *lane) Renewal {
	floor := l.floor
	if !l.crashed || c.progressed(now, l) {
		floor = c.floorOf(l)
	}
	return Renewal{Tenure: l.tenure(), Floor: floor, Needs: l.needsOf()}
}

// renewed takes in the answer to a renewal that was sent then.
func (c *Core) renewed(sent time.Duration, l *lane, floor int64, renewed []int16) {
	switch {
	case l.lost || l.releasing:
	case !slices.Contains(renewed, l.number):
		c.lose(l, "a renewal found the lane taken")
	default:
		if floor > l.floor && c.tooEarly(sent, l) == 0 {
			l.crashed = false
		}
		l.since, l.floor = sent, floor
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
	take := Acquire{Relay: c.config.Relay, Token: c.newToken(), Lanes: wanted, Max: len(wanted), Lease: c.config.Lease}
	begin(c, OpAcquire, &m.acquire,
		func(ctx context.Context, store Store) ([]Acquired, error) { return store.Acquire(ctx, take) },
		func(told time.Duration, lanes []Acquired, err error) {
			if err != nil { // it may have taken lanes: give back whatever has this token
				m.unknown = append(m.unknown, take.Token)
				return
			}
			for _, a := range lanes {
				c.acquired(now, told, a, take.Token).wanted = needed[a.Lane]
			}
		})
}

// acquired begins a tenure.
func (c *Core) acquired(sent, now time.Duration, a Acquired, token outbox.ID) *lane {
	if old := c.lanes[a.Lane]; old != nil { // it had expired, and was not noticed yet
		c.lose(old, "the lane was acquired anew")
	}
	l := &lane{
		number: a.Lane, token: token, since: sent, acquiredAt: now, crashed: a.Crashed, floor: a.Floor, swept: a.Floor, sweptFrom: a.Floor, w: a.Floor, c: a.Floor,
		rows: map[int64]*row{}, sent: map[int64]bool{}, holds: map[lineKey]*hold{},
	}
	if a.CrashCount >= crashesToCare {
		l.careful, c.careful = true, true
		c.alarm(a.Lane, "relays keep dying while they hold this lane: its events are published one at a time")
	}
	if a.NotedCount > 0 {
		l.blamed = a.NotedEvent
	}
	if a.NotedCount >= crashesToQuarantine {
		l.suspect = a.NotedEvent
	}
	c.lanes[a.Lane] = l
	at, _ := slices.BinarySearchFunc(c.sorted, l, func(x, y *lane) int { return int(x.number) - int(y.number) })
	c.sorted = slices.Insert(c.sorted, at, l)
	for _, r := range c.ordered {
		if r.paused || r.probing || len(r.resume) > 0 {
			r.resume = append(r.resume, resume{lane: l, from: l.floor})
		}
	}
	c.config.Observe(Step{Do: DidAcquire, Lane: a.Lane, Token: token, Since: sent})
	if c.stopping {
		c.drain(l)
	}
	return l
}

// openLanes finds out what is held in new lanes, before anything ready is read: else a later event could
// overtake one that waits for its retry.
func (c *Core) openLanes(now time.Duration) {
	m := &c.members
	if c.stopping || c.shut(&m.opening, now) {
		return
	}
	var opening []*lane
	var numbers []int16
	unpark := Unpark{Types: c.config.Routes.Types()}
	for _, l := range c.sorted {
		if !l.opened && !l.draining {
			opening = append(opening, l)
			numbers = append(numbers, l.number)
			unpark.Lanes = append(unpark.Lanes, l.tenure())
		}
	}
	if len(opening) == 0 {
		return
	}
	begin(c, OpHeldKeys, &m.opening,
		func(ctx context.Context, store Store) ([]HeldKey, error) {
			if err := store.Unpark(ctx, unpark); err != nil {
				return nil, err
			}
			return store.HeldKeys(ctx, numbers)
		},
		func(now time.Duration, keys []HeldKey, err error) {
			if err != nil {
				return
			}
			for _, l := range opening {
				l.opened = !l.lost
			}
			for _, key := range keys {
				if l := c.lanes[key.Lane]; l != nil && slices.Contains(opening, l) && !l.draining {
					c.meetHeld(now, l, key)
				}
			}
			c.reader.wake(now, c.config.MinPoll)
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
		mine, everybodys := suits(peers, me, l.needsOf())
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

// giveBack releases lanes that are drained.
func (c *Core) giveBack(now time.Duration) {
	m := &c.members
	if c.shut(&m.release, now) {
		return
	}
	var give Release
	var lanes []*lane
	for _, l := range c.sorted {
		if l.draining && l.inFlight == 0 && l.undecided == 0 {
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
			give.Lanes = append(give.Lanes, Renewal{Tenure: l.tenure(), Floor: l.floor, Needs: l.needed})
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
