package operator_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// Settles of held events, as a relay sends them: $1 the relay, $2 lanes, $3 numbers and $4 versions as it has read
// them, $5 what they become: published, or held in another way. They answer how many they have changed.
const (
	// settle has the shape that all of ours have: the held row decides, then the event follows. PostgreSQL may come to the
	// next held row when the event of the one before is changed already.
	settle = `WITH own AS MATERIALIZED (
		SELECT FROM {schema}.outbox_relays r WHERE r.id = $1::text::uuid AND r.ended_at IS NULL FOR KEY SHARE
	), locked AS MATERIALIZED (
		SELECT h.lane, h.seq FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) k(lane, seq, version)
		  JOIN {schema}.outbox_held h ON h.lane = k.lane AND h.seq = k.seq AND h.version = k.version
		 WHERE EXISTS (SELECT FROM own) ORDER BY h.lane, h.seq FOR UPDATE OF h
	), gone AS (
		DELETE FROM {schema}.outbox_held h USING locked l WHERE h.lane = l.lane AND h.seq = l.seq AND $5::smallint = 6
	), kept AS (
		UPDATE {schema}.outbox_held h
		   SET kind = $5::smallint, due = clock_timestamp(), since = clock_timestamp(), version = DEFAULT
		  FROM locked l WHERE h.lane = l.lane AND h.seq = l.seq AND $5::smallint <> 6
	), changed AS (
		UPDATE {schema}.outbox_events e
		   SET state = CASE $5::smallint WHEN 6 THEN 6 ELSE 1 END, attempt_count = e.attempt_count + 1
		  FROM locked l WHERE e.lane = l.lane AND e.seq = l.seq RETURNING 1
	) SELECT count(*) FROM changed`
	// eventsFirst is a mistake: the event decides, and the held row follows what it returns.
	eventsFirst = `WITH own AS MATERIALIZED (
		SELECT FROM {schema}.outbox_relays r WHERE r.id = $1::text::uuid AND r.ended_at IS NULL FOR KEY SHARE
	), changed AS (
		UPDATE {schema}.outbox_events e
		   SET state = CASE $5::smallint WHEN 6 THEN 6 ELSE 1 END, attempt_count = e.attempt_count + 1
		  FROM unnest($2::smallint[], $3::bigint[], $4::bigint[]) k(lane, seq, version)
		 WHERE e.lane = k.lane AND e.seq = k.seq AND e.state = 1 AND EXISTS (SELECT FROM own) RETURNING e.lane, e.seq
	), gone AS (
		DELETE FROM {schema}.outbox_held h USING changed c WHERE h.lane = c.lane AND h.seq = c.seq AND $5::smallint = 6
	), kept AS (
		UPDATE {schema}.outbox_held h
		   SET kind = $5::smallint, due = clock_timestamp(), since = clock_timestamp(), version = DEFAULT
		  FROM changed c WHERE h.lane = c.lane AND h.seq = c.seq AND $5::smallint <> 6
	) SELECT count(*) FROM changed`
)

// A batch is what a settle is about.
type batch struct {
	relay          string
	lanes          []int16
	seqs, versions []int64
}

// relay writes one that is alive.
func (e *env) relay() (id string) {
	e.t.Helper()
	id = outbox.NewID().String()
	e.exec(`INSERT INTO {schema}.outbox_relays (id, token, name, lanes)
		SELECT $1::text::uuid, gen_random_uuid(), 'r', array_agg(lane) FROM {schema}.outbox_lanes`, id)
	return id
}

// read reads held events as a relay does, in this order.
func (e *env) read(relay string, ids ...outbox.ID) batch {
	e.t.Helper()
	b := batch{relay: relay}
	for _, id := range ids {
		var lane int16
		var seq, version int64
		if err := e.admin.QueryRow(e.t.Context(), e.sql(`SELECT h.lane, h.seq, h.version FROM {schema}.outbox_held h
			JOIN {schema}.outbox_events e ON e.lane = h.lane AND e.seq = h.seq WHERE e.id = $1`), id.String(),
		).Scan(&lane, &seq, &version); err != nil {
			e.t.Fatal(err)
		}
		b.lanes, b.seqs, b.versions = append(b.lanes, lane), append(b.seqs, seq), append(b.versions, version)
	}
	return b
}

// session is a connection that is known by its process.
type session struct {
	*pgx.Conn
	e    *env
	busy *sync.WaitGroup // with what was sent, whether or not anybody receives how it ended
}

// connect opens a session, as the operator's role or as the one that owns everything.
func (e *env) connect(asOperator bool) session {
	e.t.Helper()
	config := e.admin.Config().ConnConfig
	if asOperator {
		config = e.role.Config().ConnConfig
	}
	conn, err := pgx.ConnectConfig(e.t.Context(), config)
	if err != nil {
		e.t.Fatal(err)
	}
	busy := &sync.WaitGroup{}
	e.t.Cleanup(func() {
		busy.Wait()
		_ = conn.Close(context.Background())
	})
	return session{conn, e, busy}
}

// hold locks rows until the transaction is rolled back.
func (s session) hold(statement string, args ...any) pgx.Tx {
	s.e.t.Helper()
	tx, err := s.Begin(s.e.t.Context())
	if err != nil {
		s.e.t.Fatal(err)
	}
	if _, err := tx.Exec(s.e.t.Context(), s.e.sql(statement), args...); err != nil {
		s.e.t.Fatalf("%s: %v", statement, err)
	}
	return tx
}

// settled is how a settle ended.
type settled struct {
	rows int
	err  error
}

// settle sends one, and goes on.
func (s session) settle(statement string, b batch, becomes state.State) <-chan settled {
	ended := make(chan settled, 1)
	s.busy.Go(func() {
		var end settled
		end.err = s.QueryRow(s.e.t.Context(), s.e.sql(statement), b.relay, b.lanes, b.seqs, b.versions, int16(becomes)).
			Scan(&end.rows)
		ended <- end
	})
	return ended
}

// done is how a verb ended.
type done struct {
	results []operator.Result
	err     error
}

// do runs a verb of this session's own operator, and goes on.
func (s session) do(what string, ids ...outbox.ID) <-chan done {
	op := operator.New(s.Conn, s.e.schema)
	do := map[string]verb{"redrive": op.Redrive, "skip": op.Skip, "release": op.Release, "discard": op.Discard}[what]
	ended := make(chan done, 1)
	s.busy.Go(func() {
		var end done
		end.results, end.err = do(s.e.t.Context(), action(), ids...)
		ended <- end
	})
	return ended
}

// waitsFor returns when this session waits for a lock of the other one.
func (s session) waitsFor(other session) {
	s.e.t.Helper()
	look := time.NewTicker(2 * time.Millisecond)
	defer look.Stop()
	for began := time.Now(); ; <-look.C {
		var blockers []int32
		if err := s.e.admin.QueryRow(s.e.t.Context(), "SELECT pg_catalog.pg_blocking_pids($1)",
			int32(s.PgConn().PID())).Scan(&blockers); err != nil {
			s.e.t.Fatal(err)
		}
		if slices.Contains(blockers, int32(other.PgConn().PID())) {
			return
		}
		if time.Since(began) > patience {
			s.e.t.Fatalf("session %d waits for %v, and not for %d", s.PgConn().PID(), blockers, other.PgConn().PID())
		}
	}
}

// receive waits for an end.
func receive[T any](t *testing.T, from <-chan T) (end T) {
	t.Helper()
	select {
	case end = <-from:
	case <-time.After(patience):
		t.Fatal("it does not end")
	}
	return end
}
