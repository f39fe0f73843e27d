package emit

import (
	"context"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// inversions lets two sessions emit in turn, each after the other has committed, and counts how often the
// later event has the lower number.
func (p env) inversions(t testing.TB) int {
	t.Helper()
	var sessions [2]*pgxpool.Conn
	for i := range sessions {
		session, err := p.pool.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer session.Release()
		sessions[i] = session
	}
	inverted, last := 0, 0
	for turn := range 10 {
		tx, err := sessions[turn%2].Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		receipts := p.mustEmit(t, tx, corpus.OrderCreated(`{}`))
		mustCommit(t, tx)
		seq := p.Count(t, "SELECT seq FROM {schema}.outbox_events WHERE id = $1::text::uuid", receipts[0].ID.String())
		if seq < last {
			inverted++
		}
		last = seq
	}
	return inverted
}

const cacheOfSequence = "SELECT seqcache FROM pg_catalog.pg_sequence WHERE seqrelid = " +
	"'{schema}.outbox_events_seq_seq'::pg_catalog.regclass"

func TestFaultA16SequenceCache(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		if cache := p.Count(t, cacheOfSequence); cache != 1 {
			t.Errorf("the migration made a sequence with CACHE %d", cache)
		}
		if n := p.inversions(t); n != 0 {
			t.Errorf("%d inversions between sessions that took turns", n)
		}
		// With the fault in place both must notice.
		p.Exec(t, "ALTER SEQUENCE {schema}.outbox_events_seq_seq CACHE 20")
		if cache := p.Count(t, cacheOfSequence); cache != 20 {
			t.Errorf("the catalog says CACHE %d", cache)
		}
		if p.inversions(t) == 0 {
			t.Error("a cache of 20 did not invert the order of two sessions: the check above shows nothing")
		}
	})
}

func TestFaultA18PreparedTransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, end := range []string{"COMMIT", "ROLLBACK"} {
			name := p.prepare(t, end)
			p.wantRows(t, 0, 0, 0)
			// The lock is what a reader behind a watermark, and later the doctor, goes by.
			if n := p.Count(t, `SELECT count(*) FROM pg_catalog.pg_locks 
				WHERE relation = '{schema}.outbox_events_seq_seq'::pg_catalog.regclass
				AND mode = 'RowExclusiveLock' AND granted AND pid IS NULL`); n != 1 {
				t.Errorf("%d locks on the sequence by prepared transactions, want 1", n)
			}
			p.Exec(t, end+" PREPARED '"+name+"'")
			if end == "COMMIT" {
				p.wantRows(t, 1, 2, 1)
				p.clear(t)
			}
		}
		p.wantRows(t, 0, 0, 0)
	})
}

// prepare leaves a transaction with a business row and two events prepared.
func (p env) prepare(t *testing.T, end string) string {
	t.Helper()
	name := pgtest.NewName("prepared")
	t.Cleanup(func() { // or the schema cannot be dropped
		_, _ = p.pool.Exec(context.Background(), "ROLLBACK PREPARED '"+name+"'")
	})
	tx := p.begin(t)
	p.mustOrder(t, tx, end)
	p.mustEmit(t, tx, corpus.OrderCreated(`{}`).WithKey("k"), corpus.OrderCreated(`{}`))
	if _, err := tx.Exec(t.Context(), "PREPARE TRANSACTION '"+name+"'"); err != nil {
		t.Fatal(err)
	}
	_ = tx.Rollback(t.Context()) // there is none any more; it frees the connection
	return name
}
