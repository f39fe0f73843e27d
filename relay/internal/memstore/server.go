package memstore

import (
	"fmt"
	"maps"
	"slices"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// server tells one run of a server from the next, and from other servers.
type server struct {
	starts     int // of a postmaster
	recoveries int // under the same postmaster
}

// incarnationName is what the server's answers call it. One in recovery has the primary's name here, which makes it
// harder to notice than a real one.
func (s *Store) incarnationName() string {
	return s.config.Incarnation(s.server.starts, s.server.recoveries)
}

// Restart crashes the server and starts it again. Open transactions are rolled back, commits that did not
// wait for the disk are gone, and so are numbers of the sequence that nothing made durable. It returns how many
// prepared transactions were kept.
func (s *Store) Restart() (prepared int) {
	s.server.starts++
	return s.crash()
}

// Recover is what a postmaster does when one of its backends was killed: a crash without a restart.
func (s *Store) Recover() (prepared int) {
	s.server.recoveries++
	return s.crash()
}

func (s *Store) crash() (prepared int) {
	for _, tx := range s.open {
		if !tx.prepared {
			tx.lose()
		}
	}
	for _, r := range s.volatile {
		s.removeFromIndex(r)
		delete(s.events, r.ID)
	}
	s.volatile, s.last = nil, s.durable
	return s.keepPrepared()
}

// lose ends a transaction whose server is gone.
func (tx *Tx) lose() {
	tx.ended = true
	for _, r := range tx.rows {
		delete(tx.store.events, r.ID)
	}
}

// keepPrepared forgets the transactions that have ended. The prepared ones have no session any more, and so another
// virtual id.
func (s *Store) keepPrepared() (prepared int) {
	s.open = slices.DeleteFunc(s.open, func(tx *Tx) bool { return tx.ended })
	for _, tx := range s.open {
		tx.vxid = fmt.Sprintf("-1/%d", tx.xid)
	}
	s.begun = 0
	return len(s.open)
}

// Copy is what a standby has that got no more of the primary's log since.
type Copy struct {
	lanes    []lane // without their indexes
	rows     []row
	prepared []preparedTx
	relays   []relay
	topics   []TopicRow
	letters  []LetterRow
	actions  []ActionRow
	requests []RequestRow
	pauses   []core.Pause
	limits   []core.Limit
	last     int64
	nextXID  uint64
}

// preparedTx is a transaction that was prepared when the copy was made, with its rows as they were.
type preparedTx struct {
	tx   *Tx
	rows []row
}

// Copy copies what is durable: nothing else is sent to a standby.
func (s *Store) Copy() *Copy {
	c := &Copy{
		lanes: slices.Clone(s.lanes), relays: slices.Clone(s.relays), topics: slices.Clone(s.topics),
		letters: slices.Clone(s.letters),
		actions: slices.Clone(s.actions), requests: slices.Clone(s.requests), pauses: slices.Clone(s.pauses),
		limits: slices.Clone(s.limits),
		last:   s.durable, nextXID: s.nextXID,
	}
	for i := range c.lanes {
		c.lanes[i].index = index{}
	}
	for _, r := range s.events {
		if r.visible && !slices.Contains(s.volatile, r) {
			c.rows = append(c.rows, *r)
		}
	}
	for _, tx := range s.open {
		if tx.prepared {
			p := preparedTx{tx: tx}
			for _, r := range tx.rows {
				p.rows = append(p.rows, *r)
			}
			c.prepared = append(c.prepared, p)
		}
	}
	return c
}

// Undone is what a promotion took back.
type Undone struct {
	Vanished []outbox.ID // rows whose commits were durable on the old primary
	Changed  []outbox.ID // rows in another state than before, or with other attempts
	Letters  []LetterRow
	Actions  []ActionRow
	Requests []RequestRow // that are gone
	Floors   int          // lanes whose floor is lower than before
	Prepared int          // transactions that are open still
}

// Promote makes the standby that has the copy the primary. Sessions end, and transactions with them, except for
// those that were prepared before the copy. One that was prepared then and has ended since is ended again at once,
// in the same way: its coordinator finds it, and nobody gets the locks that it has before that.
func (s *Store) Promote(c *Copy) Undone {
	undone := Undone{Letters: vanished(s.letters, len(c.letters)), Actions: vanished(s.actions, len(c.actions))}
	before, volatile, status := s.events, s.volatile, s.Status()
	s.lanes, s.relays, s.topics, s.pauses, s.limits = c.lanes, c.relays, c.topics, c.pauses, c.limits
	undone.Requests = vanished(s.requests, len(c.requests))
	for i, now := range c.requests {
		if s.requests[i] != now {
			undone.Changed = append(undone.Changed, now.Event)
			c.requests[i].Reverted = true
		}
	}
	s.letters, s.actions, s.requests = c.letters, c.actions, c.requests
	for i, now := range s.Status() {
		if status[i].Floor > now.Floor {
			undone.Floors++
		}
	}
	s.events, s.volatile = make(map[outbox.ID]*row, len(c.rows)), nil
	for i := range c.rows {
		s.insert(&c.rows[i])
	}
	s.restorePrepared(c)
	s.server.starts++
	s.last, s.durable, s.nextXID = c.last, c.last, c.nextXID
	undone.Prepared = s.keepPrepared()
	for _, id := range slices.SortedFunc(maps.Keys(before),
		func(a, b outbox.ID) int { return slices.Compare(a[:], b[:]) }) {
		old, now := before[id], s.events[id]
		switch {
		case !old.visible || now != nil && now.State == old.State && now.Attempts == old.Attempts:
		case now != nil && now.visible:
			undone.Changed = append(undone.Changed, id)
		case !slices.Contains(volatile, old):
			undone.Vanished = append(undone.Vanished, id)
		}
	}
	return undone
}

// restorePrepared keeps the prepared transactions of the copy, and ends the others.
func (s *Store) restorePrepared(c *Copy) {
	for _, tx := range s.open {
		if !slices.ContainsFunc(c.prepared, func(p preparedTx) bool { return p.tx == tx }) {
			tx.ended = true
		}
	}
	for _, p := range c.prepared {
		switch {
		case !p.tx.ended:
			for _, r := range p.tx.rows {
				s.events[r.ID] = r
			}
		case p.tx.committed:
			for i := range p.rows {
				p.rows[i].visible = true
				s.insert(&p.rows[i])
			}
		}
	}
}

// insert enters a row that is visible.
func (s *Store) insert(r *row) {
	s.events[r.ID] = r
	s.addToIndex(r)
}

// vanished are the entries that were written behind the first n.
func vanished[T any](list []T, n int) []T { return slices.Clone(list[n:]) }
