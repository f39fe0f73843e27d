package operator_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// database is what there is to see.
func (e *env) database() operator.Database {
	e.t.Helper()
	found, err := e.operator.Database(e.t.Context())
	if err != nil {
		e.t.Fatal(err)
	}
	return found
}

// table is one of them.
func (e *env) table(found operator.Database, name string) operator.Table {
	e.t.Helper()
	at := slices.IndexFunc(found.Tables, func(t operator.Table) bool { return t.Name == name })
	if at < 0 {
		e.t.Fatalf("%s is not among %+v", name, found.Tables)
	}
	return found.Tables[at]
}

// TestDatabase says how large the tables are and how they are updated, without a count.
func TestDatabase(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec("ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = off)")
		for range 20 {
			e.event("1", "order_created", state.Ready)
		}
		// Statistics are written when a session comes to it: this one does before it answers.
		conn, err := e.admin.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		for _, statement := range []string{
			"VACUUM ANALYZE {schema}.outbox_events", "UPDATE {schema}.outbox_events SET attempt_count = 5 WHERE state = 0",
			"CREATE TABLE {schema}.outbox_parts (i integer PRIMARY KEY) PARTITION BY RANGE (i)",
			"CREATE TABLE {schema}.outbox_parts_1 PARTITION OF {schema}.outbox_parts FOR VALUES FROM (0) TO (9)",
			"INSERT INTO {schema}.outbox_parts VALUES (1)", "SELECT pg_stat_force_next_flush()",
		} {
			if _, err := conn.Exec(t.Context(), e.sql(statement)); err != nil {
				t.Fatalf("%s: %v", statement, err)
			}
		}
		found := e.database()
		if found.Server != e.one("SHOW server_version") || found.At.IsZero() {
			t.Errorf("%+v", found)
		}
		events := e.table(found, "outbox_events")
		share, known := events.HOTShare()
		if events.Bytes < 8192 || events.IndexBytes < 3*8192 || events.Rows != 20 || events.Updates < 20 || !known ||
			share <= 0 || share > 1 || events.Dead < 20 || events.Vacuumed == nil || events.Autovacuumed != nil {
			t.Errorf("%+v, %f", events, share)
		}
		parts := e.table(found, "outbox_parts")
		if parts.Bytes < 8192 || parts.IndexBytes < 8192 || parts.Rows != 1 {
			t.Errorf("of one with partitions: %+v", parts)
		}
		if slices.ContainsFunc(found.Tables, func(t operator.Table) bool { return t.Name == "outbox_parts_1" }) {
			t.Error("a partition is there twice")
		}
		if _, known := (&operator.Table{}).HOTShare(); known {
			t.Error("a share of nothing")
		}
	})
}

// TestWhoHoldsASnapshot is seen with the viewer's rights; since when, only with those to see others' statistics.
func TestWhoHoldsASnapshot(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		holder := e.connect(false)
		tx, err := holder.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := tx.Exec(t.Context(), "SET LOCAL application_name = 'report'"); err != nil {
			t.Fatal(err)
		}
		var one int
		if err := tx.QueryRow(t.Context(), "SELECT 1").Scan(&one); err != nil {
			t.Fatal(err)
		}
		// The snapshot gets older by it.
		e.exec("SELECT pg_current_xact_id()")
		read := func() operator.Snapshot {
			t.Helper()
			all, err := e.operator.Snapshots(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			at := slices.IndexFunc(all, func(s operator.Snapshot) bool { return s.PID == int(holder.PgConn().PID()) })
			if at < 0 {
				return operator.Snapshot{}
			}
			return all[at]
		}
		s := read()
		if s.Kind != "session" || s.Role != holder.Config().User || s.Application != "report" || s.Transactions < 1 ||
			s.Since != nil || s.State != "" || e.database().SeesAll {
			t.Errorf("as a viewer: %+v", s)
		}
		e.exec("GRANT pg_read_all_stats TO operator_" + e.schema)
		if s = read(); s.State != "idle in transaction" || s.Since == nil || time.Since(*s.Since) > patience ||
			!e.database().SeesAll {
			t.Errorf("as one who sees statistics: %+v", s)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		if s = read(); s != (operator.Snapshot{}) {
			t.Errorf("it has ended: %+v", s)
		}
		name := "left_in_" + e.schema
		for _, statement := range []string{"BEGIN", "SELECT pg_current_xact_id()", "PREPARE TRANSACTION '" + name + "'"} {
			if _, err := holder.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		all, err := e.operator.Snapshots(t.Context())
		if _, end := e.admin.Exec(context.WithoutCancel(t.Context()), "ROLLBACK PREPARED '"+name+"'"); end != nil {
			t.Error(end)
		}
		if err != nil || !slices.ContainsFunc(all, func(s operator.Snapshot) bool {
			return s.Kind == "prepared" && s.Name == name && s.Role == holder.Config().User && s.Since != nil
		}) {
			t.Errorf("a prepared transaction is not among %+v, %v", all, err)
		}
	})
}

// TestRetentionInTheDatabase: what it last did, and how old what is there is.
func TestRetentionInTheDatabase(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for _, r := range e.database().Retention {
			if r.Oldest != nil || r.CutOff != nil || r.RanAt != nil || r.HaltedAt != nil || r.Working || r.Deleted != 0 {
				t.Errorf("in the beginning: %+v", r)
			}
		}
		e.event("1", "order_created", state.Published)
		e.event("2", "order_created", state.Dead)
		e.exec(`UPDATE {schema}.outbox_retention SET cut_off = '2026-01-01Z', ran_at = '2026-01-31Z', deleted = 7,
			work_until = 'infinity', worker = gen_random_uuid() WHERE kind = 'published'`)
		e.exec(`UPDATE {schema}.outbox_retention SET halted_at = '2026-01-31Z', halt_reason = 'too much'
			WHERE kind = 'dead'`)
		found := map[string]operator.Retention{}
		for _, r := range e.database().Retention {
			found[r.Kind] = r
		}
		published, dead, keys := found["published"], found["dead"], found["dedupe"]
		var made time.Time
		if err := e.admin.QueryRow(t.Context(), e.sql("SELECT min(created_at) FROM {schema}.outbox_events")).
			Scan(&made); err != nil {
			t.Fatal(err)
		}
		if published.CutOff == nil || published.RanAt == nil || published.RanAt.Sub(*published.CutOff) != 30*24*time.Hour ||
			published.Deleted != 7 || !published.Working || published.Oldest == nil ||
			!published.Oldest.Equal(made) {
			t.Errorf("%+v", published)
		}
		if dead.HaltedAt == nil || dead.HaltReason != "too much" || dead.Oldest == nil || dead.Working {
			t.Errorf("%+v", dead)
		}
		if keys.Kind != "dedupe" || keys.Oldest != nil {
			t.Errorf("%+v", keys)
		}
	})
}
