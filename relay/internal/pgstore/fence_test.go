package pgstore_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// TestExtend: a transaction id gets the epoch that it has, on both sides of the wrap and of the snapshot.
func TestExtend(t *testing.T) {
	t.Parallel()
	const wrap = uint64(1) << 32
	for _, c := range []struct {
		xid  uint32
		xmax uint64
		want uint64
	}{
		{700, 1000, 700},
		{1001, 1000, 1001},
		{1<<32 - 1, wrap + 5, wrap - 1},       // began before the wrap, listed after it
		{3, wrap - 1, wrap + 3},               // began after the snapshot, and the wrap lies between
		{7, 5*wrap + 7, 5*wrap + 7},           // equal
		{1<<32 - 2, 3*wrap + 1, 3*wrap - 2},   // the epoch of the snapshot would be one too many
		{1 << 31, wrap + 1<<31, wrap + 1<<31}, // in the middle
		{1, wrap + 1<<31 - 1, wrap + 1},
	} {
		if got := pgstore.Extend(c.xid, c.xmax); got != c.want {
			t.Errorf("%d beside %d is %d, want %d", c.xid, c.xmax, got, c.want)
		}
	}
}

func (w *world) fence(t testing.TB) core.Fence {
	t.Helper()
	return must(w.store.Fence(t.Context()))(t)
}

// own is the transaction as the fence must see it.
func own(t testing.TB, tx pgx.Tx, hasXID bool) core.Writer {
	t.Helper()
	var writer core.Writer
	query := "SELECT virtualtransaction, 0 FROM pg_locks WHERE pid = pg_backend_pid() AND locktype = 'virtualxid'"
	if hasXID {
		query = "SELECT virtualtransaction, pg_current_xact_id()::text::bigint FROM pg_locks WHERE pid = pg_backend_pid() " +
			"AND locktype = 'virtualxid'"
	}
	if err := tx.QueryRow(t.Context(), query).Scan(&writer.VXID, &writer.XID); err != nil {
		t.Fatal(err)
	}
	return writer
}

// TestFenceSeesEveryWriter: whichever way a transaction draws a number, it is listed until it has ended,
// under its own id and not that of a subtransaction.
func TestFenceSeesEveryWriter(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		if fence := w.fence(t); fence.Last != 0 || len(fence.Writers) != 0 || fence.Standby || fence.Incarnation == "" {
			t.Fatalf("a fresh outbox has %+v", fence)
		}
		insert := func(t *testing.T, tx pgx.Tx) { w.insert(t, tx, "1", "order_created") }
		exec := func(t *testing.T, tx pgx.Tx, statement string) {
			if _, err := tx.Exec(t.Context(), w.sql(statement)); err != nil {
				t.Fatal(err)
			}
		}
		for _, c := range []struct {
			name  string
			write func(t *testing.T, tx pgx.Tx)
			noXID bool
		}{
			{name: "insert", write: insert},
			{name: "emit", write: func(t *testing.T, tx pgx.Tx) {
				exec(t, tx, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')")
			}},
			{name: "copy", write: func(t *testing.T, tx pgx.Tx) {
				id := outbox.NewID()
				_, err := tx.CopyFrom(t.Context(), pgx.Identifier{w.schema, "outbox_events"}, []string{
					"id", "event_type", "aggregate_type", "aggregate_id", "payload_json",
				},
					pgx.CopyFromRows([][]any{{id.String(), "t", "order", "1", payload(id)}}))
				if err != nil {
					t.Fatal(err)
				}
			}},
			{name: "savepoint", write: func(t *testing.T, tx pgx.Tx) {
				exec(t, tx, "SAVEPOINT a")
				insert(t, tx)
				exec(t, tx, "SAVEPOINT b")
				insert(t, tx)
			}},
			{name: "savepoint rolled back", write: func(t *testing.T, tx pgx.Tx) {
				exec(t, tx, "SAVEPOINT a")
				insert(t, tx)
				exec(t, tx, "ROLLBACK TO a")
			}},
			{name: "nextval first", noXID: true, write: func(t *testing.T, tx pgx.Tx) {
				exec(t, tx, "SELECT nextval('{schema}.outbox_events_seq_seq') FROM pg_sleep(0)")
			}},
			{name: "many relations", write: func(t *testing.T, tx pgx.Tx) {
				for i := range 20 {
					exec(t, tx, fmt.Sprintf("CREATE TEMPORARY TABLE t%d () ON COMMIT DROP", i))
				}
				insert(t, tx)
			}},
		} {
			tx := w.begin(t)
			c.write(t, tx)
			want := own(t, tx, !c.noXID)
			fence := w.fence(t)
			if c.noXID && len(fence.Writers) == 1 {
				want.XID = fence.Writers[0].XID // a logged draw has one, another has none
			}
			if !slices.Equal(fence.Writers, []core.Writer{want}) {
				t.Errorf("%s: the fence lists %+v, want %+v", c.name, fence.Writers, want)
			}
			if last := w.count(t, "SELECT last_value FROM {schema}.outbox_events_seq_seq"); fence.Last != int64(last) {
				t.Errorf("%s: the sequence is at %d, the fence says %d", c.name, last, fence.Last)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if fence := w.fence(t); len(fence.Writers) != 0 {
				t.Errorf("%s: it ended, and the fence lists %+v", c.name, fence.Writers)
			}
		}
	})
}

// TestFenceSeesPreparedTransactions: a transaction that waits for its second phase has drawn its numbers.
func TestFenceSeesPreparedTransactions(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		if n := w.count(t, "SELECT current_setting('max_prepared_transactions')::int"); n == 0 {
			t.Skip("this server has max_prepared_transactions = 0")
		}
		conn := must(w.owner.Acquire(t.Context()))(t)
		defer conn.Release()
		name := "'" + w.schema + "'"
		tx := must(conn.Begin(t.Context()))(t)
		w.insert(t, tx, "1", "order_created")
		want := own(t, tx, true)
		if _, err := tx.Exec(t.Context(), "PREPARE TRANSACTION "+name); err != nil {
			t.Fatal(err)
		}
		fence := w.fence(t)
		if len(fence.Writers) != 1 || fence.Writers[0].XID != want.XID {
			t.Errorf("the fence lists %+v, want %+v", fence.Writers, want)
		}
		w.exec(t, "ROLLBACK PREPARED "+name)
		if fence := w.fence(t); len(fence.Writers) != 0 {
			t.Errorf("rolled back, the fence lists %+v", fence.Writers)
		}
	})
}

// TestFenceDoesNotTakeAStrangersID: a writer that waits for a row has a lock on the other's transaction id,
// which may be lower than its own.
func TestFenceDoesNotTakeAStrangersID(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		id := w.add(t, "1", core.Published)
		touch := w.sql("UPDATE {schema}.outbox_events SET last_error = 'x' WHERE id = $1")
		stranger := w.begin(t)
		if _, err := stranger.Exec(t.Context(), touch, id.String()); err != nil {
			t.Fatal(err)
		}
		writer := w.begin(t)
		w.insert(t, writer, "2", "order_created")
		want := own(t, writer, true)
		waited := make(chan error, 1)
		go func() {
			_, err := writer.Exec(t.Context(), touch, id.String())
			waited <- err
		}()
		w.blocked(t, stranger.Conn().PgConn().PID(), 1)
		if fence := w.fence(t); !slices.Equal(fence.Writers, []core.Writer{want}) {
			t.Errorf("the fence lists %+v, want %+v", fence.Writers, want)
		}
		if err := stranger.Rollback(t.Context()); err != nil {
			t.Error(err)
		}
		if err := receive(t, "the writer that waited", waited); err != nil {
			t.Error(err)
		}
	})
}

// TestFenceDoesNotSeeOthers: settles, retention and readers hold nothing back, nor does another outbox.
func TestFenceDoesNotSeeOthers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		other := newWorld(t, w.url)
		elsewhere := other.begin(t)
		other.insert(t, elsewhere, "1", "order_created")
		id := w.add(t, "1", core.Ready)
		for _, statement := range []string{
			"UPDATE {schema}.outbox_events SET state = 6, published_at = now() WHERE id = '" + id.String() + "'",
			"SELECT last_value FROM {schema}.outbox_events_seq_seq",
			"SELECT count(*) FROM {schema}.outbox_events",
			"DELETE FROM {schema}.outbox_events WHERE state = 6",
		} {
			tx := w.begin(t)
			if _, err := tx.Exec(t.Context(), w.sql(statement)); err != nil {
				t.Fatal(err)
			}
			if fence := w.fence(t); len(fence.Writers) != 0 || fence.Last != 1 {
				t.Errorf("%s: the fence is %+v", statement, fence)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestTheBarrierIsACommit: it writes to the log and has that flushed, whatever the role says about its commits.
func TestTheBarrierIsACommit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.exec(t, "ALTER ROLE "+w.role+" SET synchronous_commit = off")
		// This makes an asynchronous commit and tells whether that was flushed already, and how far the log went then. It is
		// done at a stretch: others have the log flushed too, and the server flushes it by itself.
		w.exec(t, `CREATE PROCEDURE {schema}.leave(INOUT is_left boolean, INOUT written text) LANGUAGE plpgsql AS $$
			DECLARE before pg_lsn;
			BEGIN
				PERFORM set_config('synchronous_commit', 'off', true), {schema}.outbox_emit('order_created', 'order', '1', '{}');
				before := pg_current_wal_insert_lsn();
				COMMIT;
				is_left := pg_current_wal_flush_lsn() <= before;
				written := pg_current_wal_insert_lsn();
			END $$`)
		// Who finds the log flushed does not know by whom. So this stands in the place of the server's function, and notes
		// how the barrier will commit.
		w.exec(t, "CREATE TABLE {schema}.noted (transactional boolean, synchronous_commit text)")
		w.exec(t, `CREATE FUNCTION {schema}.pg_logical_emit_message(transactional boolean, prefix text, content text) 
			RETURNS pg_lsn LANGUAGE plpgsql AS $$
			BEGIN
				INSERT INTO {schema}.noted VALUES (transactional, current_setting('synchronous_commit'));
				RETURN pg_catalog.pg_logical_emit_message(transactional, prefix, content);
			END $$`)
		w.exec(t, "GRANT INSERT ON {schema}.noted TO "+w.role)
		plain := w.open(t, w.url, func(*pgxpool.Config) {})
		noting := w.open(t, w.url, func(config *pgxpool.Config) {
			config.ConnConfig.RuntimeParams["search_path"] = `"` + w.schema + `", pg_catalog`
		})
		for name, call := range map[string]func(*pgstore.Store) error{
			"barrier": func(store *pgstore.Store) error { return store.Barrier(t.Context(), "") },
			"fence": func(store *pgstore.Store) error {
				_, err := store.Fence(t.Context())
				return err
			},
		} {
			w.wantFlushed(t, name, func() error { return call(pgstore.New(plain, w.schema)) })
			if err := call(pgstore.New(noting, w.schema)); err != nil {
				t.Error(err)
			}
			if got := w.rows(t, "SELECT * FROM {schema}.noted"); !slices.Equal(got, []string{"(t,on)"}) {
				t.Errorf("the %s commits with %q", name, got)
			}
			w.exec(t, "TRUNCATE {schema}.noted")
		}
		var mode string
		if err := plain.QueryRow(t.Context(), "SHOW synchronous_commit").Scan(&mode); err != nil || mode != "off" {
			t.Errorf("synchronous_commit is %q, %v: the barrier changed the session", mode, err)
		}
	})
}

// wantFlushed holds a call to flushing asynchronous commits that nobody had flushed when they were made.
func (w *world) wantFlushed(t *testing.T, name string, call func() error) {
	t.Helper()
	began := time.Now()
	for left := 0; left < 20; {
		var isLeft bool
		var written string
		if err := w.owner.QueryRow(t.Context(), w.sql("CALL {schema}.leave(NULL, NULL)")).Scan(&isLeft, &written); err !=
			nil {
			t.Fatal(err)
		}
		if err := call(); err != nil {
			t.Error(err)
		}
		if w.count(t, "SELECT (pg_current_wal_flush_lsn() >= $1::text::pg_lsn)::int", written) != 1 {
			t.Errorf("the %s left an asynchronous commit unflushed", name)
			return
		}
		if isLeft {
			left++
		}
		if time.Since(began) > patience {
			t.Fatalf("in %s %d asynchronous commits were not flushed when they were made: this test does not test",
				patience, left)
		}
	}
}

// TestTheBarrierIsOfOneServer: it fails where it is not the server that was read from.
func TestTheBarrierIsOfOneServer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		read := w.read(t, core.Read{Lanes: []core.LaneRead{{Lane: 1, Limit: 1}}})
		for _, incarnation := range []string{"", read.Incarnation, w.fence(t).Incarnation} {
			if err := w.store.Barrier(t.Context(), incarnation); err != nil {
				t.Errorf("%q: %v", incarnation, err)
			}
		}
		if err := w.store.Barrier(t.Context(), read.Incarnation+"1"); err == nil {
			t.Error("the barrier of another server counts")
		}
	})
}

// TestFaultC5AWarningIsNoBarrier: a commit that did not wait for its standby is told by a warning. Here a
// view stands in the sequence's place and warns as the server does.
func TestFaultC5AWarningIsNoBarrier(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		fake := w.schema + "_fake"
		w.exec(t, "CREATE SCHEMA "+fake)
		t.Cleanup(func() { _, _ = w.owner.Exec(context.Background(), "DROP SCHEMA "+fake+" CASCADE") })
		for _, statement := range []string{
			`CREATE FUNCTION {fake}.warn() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
				RAISE WARNING 'canceling wait for synchronous replication due to user request'
					USING DETAIL = 'The transaction has already committed locally, but might not have been replicated to the standby.';
				RETURN 1; END $$`,
			"CREATE VIEW {fake}.outbox_events_seq_seq AS SELECT {fake}.warn() AS last_value, true AS is_called",
			"GRANT USAGE ON SCHEMA {fake} TO {role}", "GRANT SELECT ON {fake}.outbox_events_seq_seq TO {role}",
		} {
			w.exec(t, strings.NewReplacer("{fake}", fake, "{role}", w.role).Replace(statement))
		}
		_, err := pgstore.New(w.pool, fake).Fence(t.Context())
		if err == nil || !strings.Contains(err.Error(), "might not have been replicated") {
			t.Errorf("a commit that waited for no standby counts: got %v", err)
		}
		// The next one on the same connections is not blamed for it.
		if err := w.store.Barrier(t.Context(), ""); err != nil {
			t.Error(err)
		}
	})
}

// TestTheFenceListsWritersAfterItsNumber: whoever draws a number while the fence is under way is listed, if
// the number is. Here a view stands in the sequence's place and waits for the writer.
func TestTheFenceListsWritersAfterItsNumber(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		fake := w.schema + "_fake"
		w.exec(t, "CREATE SCHEMA "+fake)
		t.Cleanup(func() { _, _ = w.owner.Exec(context.Background(), "DROP SCHEMA "+fake+" CASCADE") })
		in := strings.NewReplacer("{fake}", fake, "{role}", w.role)
		for _, statement := range []string{
			"CREATE SEQUENCE {fake}.numbers",
			`CREATE FUNCTION {fake}.late() RETURNS bigint LANGUAGE plpgsql AS $$ BEGIN
				PERFORM pg_advisory_xact_lock_shared(hashtext('{fake}')); RETURN (SELECT last_value FROM {fake}.numbers); END $$`,
			"CREATE VIEW {fake}.outbox_events_seq_seq AS SELECT {fake}.late() AS last_value, true AS is_called",
			"GRANT USAGE ON SCHEMA {fake} TO {role}", "GRANT SELECT ON {fake}.outbox_events_seq_seq, {fake}.numbers TO {role}",
		} {
			w.exec(t, in.Replace(statement))
		}
		gate, writer := w.begin(t), w.begin(t)
		do := func(tx pgx.Tx, statement string) {
			if _, err := tx.Exec(t.Context(), in.Replace(statement)); err != nil {
				t.Fatal(err)
			}
		}
		do(gate, "SELECT pg_advisory_xact_lock(hashtext('{fake}'))")
		type answer struct {
			fence core.Fence
			err   error
		}
		answers := make(chan answer, 1)
		go func() {
			fence, err := pgstore.New(w.pool, fake).Fence(t.Context())
			answers <- answer{fence, err}
		}()
		w.blocked(t, gate.Conn().PgConn().PID(), 1)
		do(writer, "LOCK TABLE {fake}.outbox_events_seq_seq IN ROW EXCLUSIVE MODE") // what drawing a number does first
		do(writer, "SELECT nextval('{fake}.numbers'), nextval('{fake}.numbers')")
		want := own(t, writer, false)
		if err := gate.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		got := receive(t, "the fence", answers)
		if got.err != nil || got.fence.Last != 2 ||
			!slices.ContainsFunc(got.fence.Writers, func(o core.Writer) bool { return o.VXID == want.VXID }) {
			t.Errorf("the fence is %+v, %v, and %s has drawn the numbers up to 2", got.fence, got.err, want.VXID)
		}
	})
}

// TestAStandbyIsReported: its numbers run ahead, and it has no barrier. The server says here that it is one.
func TestAStandbyIsReported(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, name := range []string{
			"pg_is_in_recovery() RETURNS boolean RETURN true",
			"pg_logical_emit_message(boolean, text, text) RETURNS pg_lsn RETURN (1 / 0)::text::pg_lsn",
		} {
			w.exec(t, "CREATE FUNCTION {schema}."+name)
		}
		w.exec(t, "GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA {schema} TO "+w.role)
		pool := w.open(t, w.url, func(config *pgxpool.Config) {
			pgstore.Configure(config, lease)
			config.ConnConfig.RuntimeParams["search_path"] = `"` + w.schema + `", pg_catalog`
		})
		store := pgstore.New(pool, w.schema)
		if fence, err := store.Fence(t.Context()); err != nil || !fence.Standby {
			t.Errorf("the fence is %+v, %v", fence, err)
		}
		if err := store.Barrier(t.Context(), ""); err == nil {
			t.Error("the standby had a barrier: this test does not test")
		}
	})
}

// TestConfigure: what a relay's session must have.
func TestConfigure(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		pool := w.open(t, w.url, func(config *pgxpool.Config) { pgstore.Configure(config, 30*time.Second) })
		for name, want := range map[string]string{
			"synchronous_commit": "on", "statement_timeout": "9s", "lock_timeout": "9s",
			"idle_in_transaction_session_timeout": "9s", "jit": "off",
			"application_name": "posthaste relay", "search_path": `""`, "default_transaction_isolation": "read committed",
		} {
			var got string
			if err := pool.QueryRow(t.Context(), "SELECT current_setting($1)", name).Scan(&got); err != nil ||
				got != want && got+want != `""` {
				t.Errorf("%s is %q, want %q (%v)", name, got, want, err)
			}
		}
	})
}

// TestAnIncarnationEndsWithARecovery: a backend that is killed makes the server recover, and keep the time of its
// start. What it sets anew then is in the incarnation as well. The whole is played with servers of its own in
// proof-failover.
func TestAnIncarnationEndsWithARecovery(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		fence := must(w.store.Fence(t.Context()))(t)
		recovered := w.rows(t, "SELECT (extract(epoch FROM stats_reset) * 1000000)::bigint::text FROM pg_stat_bgwriter")[0]
		recovered = strings.Trim(recovered, "()")
		if !strings.HasSuffix(fence.Incarnation, "."+recovered) {
			t.Errorf("%s does not end with the time of the last recovery, %s", fence.Incarnation, recovered)
		}
	})
}
