package schema

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	_ "github.com/lib/pq" // the other driver that migrates

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestMigratorsTakeTurns: eight at once apply every migration once, and none of them fails.
func TestMigratorsTakeTurns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		const migrators = 8
		name := emptySchema(t, server, "together")
		var all sync.WaitGroup
		var mu sync.Mutex
		times := map[int64]int{}
		for range migrators {
			std := pgtest.OpenSQL(t, "pgx", server.URL)
			all.Go(func() {
				err := schema.Outbox.Up(t.Context(), std, schema.Options{
					Schema: name, Applied: func(migration schema.Migration, _ time.Duration) {
						mu.Lock()
						defer mu.Unlock()
						times[migration.Version]++
					},
				})
				if err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		for version := int64(1); version <= newest(t); version++ {
			if times[version] != 1 {
				t.Errorf("version %d was applied %d times", version, times[version])
			}
		}
		readCatalog(t, server, name).mustEqual(t, reference(t, server, 0))
		figure(t, "migrators_"+server.Name, migrators)
	})
}

// holdUp makes the migration to this version wait at a point where it has done part of its work, and
// returns the connection that holds it up.
func holdUp(t testing.TB, server pgtest.Server, name string, version int64) pgx.Tx {
	t.Helper()
	tx, err := openPool(t, server.URL).Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) })
	// Every migration ends with a change of outbox_meta; the first one meets a table of that name that is
	// not committed yet.
	hold := "SELECT FROM " + quote(name) + ".outbox_meta FOR UPDATE"
	if version == 1 {
		hold = "CREATE TABLE " + quote(name) + ".outbox_events ()"
	}
	if _, err := tx.Exec(t.Context(), hold); err != nil {
		t.Fatal(err)
	}
	return tx
}

// blockedBy waits until some backend waits for this one, and returns that backend's process id.
func blockedBy(t testing.TB, pool *pgxpool.Pool, holder pgx.Tx) int {
	t.Helper()
	pid := 0
	eventually.True(t, "somebody waits", func() bool {
		// Who waits for nothing is not looked at: to find out who blocks whom stops everybody for a moment.
		err := pool.QueryRow(t.Context(), `SELECT coalesce(max(pid), 0) FROM pg_stat_activity
			WHERE CASE WHEN wait_event_type = 'Lock' THEN $1 = ANY (pg_blocking_pids(pid)) END`,
			holder.Conn().PgConn().PID()).Scan(&pid)
		if err != nil {
			t.Fatal(err)
		}
		return pid != 0
	})
	return pid
}

// TestKilledMigratorLeavesNoHalf kills the migrator's connection in the middle of each migration.
func TestKilledMigratorLeavesNoHalf(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		pool, kills := openPool(t, server.URL), 0
		for version := int64(1); version <= newest(t); version++ {
			name := emptySchema(t, server, "killed")
			mustExec(t, pgtest.OpenSQL(t, "pgx", server.URL), "CREATE SCHEMA "+quote(name))
			if version > 1 {
				migrateUp(t, server, schema.Options{Schema: name, Target: version - 1})
			}
			before := readCatalog(t, server, name)
			holder := holdUp(t, server, name, version)
			std := pgtest.OpenSQL(t, "pgx", server.URL)
			failed := make(chan error, 1)
			go func() {
				failed <- schema.Outbox.Up(t.Context(), std, schema.Options{Schema: name, LockTimeout: eventually.Patience})
			}()
			pid := blockedBy(t, pool, holder)
			if _, err := pool.Exec(t.Context(), "SELECT pg_terminate_backend($1)", pid); err != nil {
				t.Fatal(err)
			}
			if err := eventually.Receive(t, "the killed migrator has ended", failed); err == nil {
				t.Errorf("version %d: the killed migrator reported no error", version)
			}
			if err := holder.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			if after := readCatalog(t, server, name); !slices.Equal(before, after) {
				t.Errorf("version %d: half of it is there", version)
			}
			migrateUp(t, server, schema.Options{Schema: name})
			readCatalog(t, server, name).mustEqual(t, reference(t, server, 0))
			kills++
		}
		figure(t, "migrations_killed_"+server.Name, kills)
	})
}

// TestLiveTrafficIsNotHeldUp: while a transaction uses a table, a migration that needs it alone gives up
// in time, says what to do, and has changed nothing; the transaction does not notice.
func TestLiveTrafficIsNotHeldUp(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		const timeout = 200 * time.Millisecond
		name := emptySchema(t, server, "traffic")
		migrateUp(t, server, schema.Options{Schema: name, Target: 2})
		tx, err := openPool(t, server.URL).Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
		emit := "SELECT " + quote(name) + ".outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'k')"
		if _, err := tx.Exec(t.Context(), emit); err != nil {
			t.Fatal(err)
		}
		// One that did not give up would wait for the transaction, which stays open until this context has ended.
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		before, begun := readCatalog(t, server, name), time.Now()
		err = schema.Outbox.Down(ctx, pgtest.OpenSQL(t, "pgx", server.URL), schema.Options{
			Schema: name, Target: 1, LockTimeout: timeout,
		})
		took := time.Since(begun)
		if pgtest.SQLState(err) != "55P03" || !strings.Contains(err.Error(), "nothing was changed") ||
			!strings.Contains(err.Error(), "00002_emit") {
			t.Errorf("got %v", err)
		}
		if took < timeout {
			t.Errorf("it gave up after %s, want after %s", took, timeout)
		}
		if after := readCatalog(t, server, name); !slices.Equal(before, after) {
			t.Error("the catalog changed")
		}
		if got := applied(t, server, name); len(got) != 2 {
			t.Errorf("applied %v", got)
		}
		if _, err := tx.Exec(t.Context(), emit); err != nil {
			t.Errorf("the transaction noticed: %v", err)
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Errorf("the transaction noticed: %v", err)
		}
	})
}

// watchLock stands in the place of the lock's function: it fails after a wait that another timeout than that for
// migrators could have ended, and counts them all.
func watchLock(t testing.TB, server pgtest.Server) (search string, count func() int64) {
	t.Helper()
	std, search := pgtest.OpenSQL(t, "pgx", server.URL), quote(emptySchema(t, server, "watch"))
	for _, statement := range []string{
		"CREATE SCHEMA {watch}",
		"CREATE SEQUENCE {watch}.locks", // which a rollback does not take back
		`CREATE FUNCTION {watch}.pg_advisory_xact_lock(key bigint) RETURNS void LANGUAGE plpgsql AS $$ BEGIN
			PERFORM nextval('{watch}.locks'), pg_catalog.pg_advisory_xact_lock(key);
			IF current_setting('statement_timeout') <> '0' OR current_setting('lock_timeout') <> '10min' THEN
				RAISE 'the wait has a statement_timeout of % and a lock_timeout of %', current_setting('statement_timeout'), 
				current_setting('lock_timeout');
			END IF; END $$`,
	} {
		mustExec(t, std, strings.ReplaceAll(statement, "{watch}", search))
	}
	return search, func() (locks int64) {
		if err := std.QueryRowContext(t.Context(), "SELECT last_value FROM "+search+".locks").Scan(&locks); err != nil {
			t.Fatal(err)
		}
		return locks
	}
}

// TestWaitsForTheOtherMigrator: the advisory lock has a timeout of its own: not that for live traffic, and not the
// role's statement_timeout.
func TestWaitsForTheOtherMigrator(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "patient")
		pool := openPool(t, server.URL)
		holder, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
		lock := "posthaste migrate " + quote(name) + "." + quote(schema.Outbox.VersionTable())
		if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended($1, 0))", lock); err != nil {
			t.Fatal(err)
		}
		watch, locks := watchLock(t, server)
		// Timeouts that nothing here can meet: what counts is whether the wait has them.
		address := withParameter(t, server.URL, "statement_timeout", "1h")
		std := pgtest.OpenSQL(t, "pgx", withParameter(t, address, "search_path", watch+", pg_catalog"))
		ended := make(chan error, 1)
		go func() {
			ended <- schema.Outbox.Up(t.Context(), std, schema.Options{Schema: name, LockTimeout: time.Hour})
		}()
		blockedBy(t, pool, holder)
		if err := holder.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := eventually.Receive(t, "the migrator has ended", ended); err != nil {
			t.Error(err)
		}
		if n := locks(); n < newest(t) {
			t.Errorf("%d waits for %d migrations were looked at", n, newest(t))
		}
	})
}

// X9: every role that may connect can hold the migrators' lock. Whoever waits for it is told by whom it is held.
func TestTheHolderOfTheLockIsNamed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name, role := emptySchema(t, server, "held"), pgtest.NewRole(t, server, "stranger")
		holder := connect(t, withParameter(t, pgtest.As(t, server.URL, role), "application_name", "idler's"))
		lock := "posthaste migrate " + quote(name) + "." + quote(schema.Outbox.VersionTable())
		if _, err := holder.Exec(t.Context(), "SELECT pg_advisory_lock(hashtextextended($1, 0))", lock); err != nil {
			t.Fatal(err)
		}
		std := pgtest.OpenSQL(t, "pgx", server.URL)
		std.SetMaxOpenConns(1)
		// One that did not give up would wait for as long as the stranger likes.
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		err := schema.Outbox.Up(ctx, std, schema.Options{Schema: name, MigratorTimeout: 100 * time.Millisecond})
		says := fmt.Sprintf("process %d of role %s (application 'idler''s') holds the lock", holder.PgConn().PID(), role)
		if pgtest.SQLState(err) != "55P03" || !strings.Contains(err.Error(), says) ||
			!strings.Contains(err.Error(), "nothing was changed") || strings.Contains(err.Error(), "live traffic") {
			t.Errorf("want %q, got %v", says, err)
		}
		if err := holder.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := schema.Outbox.Up(ctx, std, schema.Options{Schema: name}); err != nil {
			t.Errorf("when the stranger has gone: %v", err)
		}
	})
}

func TestShortestLockTimeout(t *testing.T) {
	t.Parallel()
	for _, timeout := range []time.Duration{-time.Second, time.Microsecond} {
		for _, options := range []schema.Options{{LockTimeout: timeout}, {MigratorTimeout: timeout}} {
			if err := schema.Outbox.Up(t.Context(), nil, options); err == nil || !strings.Contains(err.Error(), "too short") {
				t.Errorf("%+v: %v", options, err)
			}
		}
	}
}

// PostgreSQL cuts a name that is too long, without an error: two schemas that begin alike would be one outbox.
func TestUpRejectsASchemaThatWouldBeCut(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		longest := emptySchema(t, server, "long_")
		longest += strings.Repeat("x", 63-len(longest))
		std := pgtest.OpenSQL(t, "pgx", server.URL)
		t.Cleanup(func() { mustExec(t, std, "DROP SCHEMA IF EXISTS "+quote(longest)+" CASCADE") })
		for name, taken := range map[string]bool{longest: true, longest + "1": false, longest + "2": false} {
			if err := schema.Outbox.Up(t.Context(), std, schema.Options{Schema: name}); (err == nil) != taken {
				t.Errorf("a schema's name of %d bytes: %v", len(name), err)
			}
		}
	})
}
