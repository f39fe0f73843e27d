package memstore

import (
	"errors"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// ErrEnded is the answer of a transaction that has ended, by its producer or by a restart.
var ErrEnded = errors.New("memstore: the transaction has ended")

// Tx is a producer's transaction. What it writes becomes visible when it commits; the numbers that it
// draws are gone from the sequence at once.
type Tx struct {
	store *Store
	vxid  string
	xid   uint64 // 0: it has written nothing yet
	drawn bool   // it holds the lock on the sequence, to its end
	ended bool
	// prepared tells that it waits for COMMIT PREPARED, which outlives the server, and committed how it ended.
	prepared, committed bool
	rows                []*row
	start               time.Time // created_at of all its events
}

// Begin starts a transaction.
func (s *Store) Begin() *Tx {
	s.begun++
	tx := &Tx{store: s, vxid: fmt.Sprintf("%d/%d", 3+s.begun%97, s.begun)}
	tx.start = s.config.Epoch.Add(s.now())
	s.open = append(s.open, tx)
	return tx
}

// Writer names the transaction as a fence lists it.
func (tx *Tx) Writer() core.Writer { return core.Writer{VXID: tx.vxid, XID: tx.xid} }

// Open tells whether the transaction has not ended.
func (tx *Tx) Open() bool { return !tx.ended }

// Draw takes the next number without writing anything: SELECT nextval() and the insert later, as some
// mappers do. The transaction is listed by fences from here on, and has no xid yet.
func (tx *Tx) Draw() (int64, error) {
	if err := tx.writable(); err != nil {
		return 0, err
	}
	tx.drawn = true
	tx.store.last++
	return tx.store.last, nil
}

// Emit writes events, each with the next number. Of the event it takes what a producer writes: id, type,
// aggregate, tenant, dedupe key, payload and headers.
func (tx *Tx) Emit(events ...core.Event) ([]int64, error) {
	numbers := make([]int64, 0, len(events))
	for i := range events {
		seq, err := tx.Draw()
		if err != nil {
			return nil, err
		}
		if err := tx.EmitAt(seq, events[i]); err != nil {
			return nil, err
		}
		numbers = append(numbers, seq)
	}
	return numbers, nil
}

// EmitAt writes an event with a number that was drawn before.
func (tx *Tx) EmitAt(seq int64, event core.Event) error {
	if err := tx.writable(); err != nil {
		return err
	}
	s := tx.store
	if _, taken := s.events[event.ID]; taken {
		return fmt.Errorf("memstore: event %s exists", event.ID)
	}
	if tx.xid == 0 {
		tx.xid = s.nextXID
		s.nextXID++
	}
	event.Lane, event.State, event.Attempts, event.Seq = s.config.Lane(event.Aggregate), core.Ready, 0, seq
	event.CreatedAt, event.DueIn = tx.start, 0
	r := &row{Event: event}
	s.events[event.ID] = r
	tx.rows = append(tx.rows, r)
	return nil
}

// Savepoint remembers a point to go back to.
func (tx *Tx) Savepoint() int { return len(tx.rows) }

// RollbackTo takes back what was written after the savepoint. The numbers stay drawn, and the lock on the
// sequence stays with the transaction.
func (tx *Tx) RollbackTo(savepoint int) error {
	if err := tx.writable(); err != nil {
		return err
	}
	for _, r := range tx.rows[savepoint:] {
		delete(tx.store.events, r.ID)
	}
	tx.rows = tx.rows[:savepoint]
	return nil
}

// Prepare makes the transaction outlive its session and the server: what PREPARE TRANSACTION does.
func (tx *Tx) Prepare() error {
	if err := tx.writable(); err != nil {
		return err
	}
	tx.prepared = true
	tx.store.flush()
	return nil
}

// Commit makes the rows visible and durable.
func (tx *Tx) Commit() error {
	wrote := tx.xid != 0
	if err := tx.CommitAsync(); err != nil {
		return err
	}
	if wrote {
		tx.store.flush()
	}
	return nil
}

// CommitAsync makes the rows visible, and durable only with the next commit that waits for the disk: what
// synchronous_commit=off does.
func (tx *Tx) CommitAsync() error {
	if err := tx.writable(); err != nil {
		return err
	}
	tx.end()
	tx.committed = true
	for _, r := range tx.rows {
		r.visible = true
		tx.store.addToIndex(r)
	}
	tx.store.volatile = append(tx.store.volatile, tx.rows...)
	return nil
}

// Rollback ends the transaction without its rows.
func (tx *Tx) Rollback() {
	if tx.ended {
		return
	}
	for _, r := range tx.rows {
		delete(tx.store.events, r.ID)
	}
	tx.end()
}

func (tx *Tx) writable() error {
	if tx.ended {
		return ErrEnded
	}
	return tx.store.write()
}

func (tx *Tx) end() {
	tx.ended = true
	open := tx.store.open
	for i := range open {
		if open[i] == tx {
			open[i] = open[len(open)-1]
			tx.store.open = open[:len(open)-1]
			return
		}
	}
}
