package schema

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// isolation is a schema with an outbox and schema/optional/tenant_isolation.sql in it.
type isolation struct {
	db  *pgtest.DB
	std *sql.DB // its search_path is the schema
}

func newIsolation(t *testing.T, db *pgtest.DB) isolation {
	t.Helper()
	script, err := os.ReadFile("../../../schema/optional/tenant_isolation.sql")
	if err != nil {
		t.Fatal(err)
	}
	i := isolation{db: db, std: pgtest.OpenSQL(t, "pgx", withParameter(t, db.URL, "search_path", db.Schema))}
	mustExec(t, i.std, string(script))
	return i
}

// producer makes a role that emits and is held to its tenant.
func (i isolation) producer(t *testing.T, role string) {
	t.Helper()
	mustExec(t, i.std, "CREATE ROLE "+quote(role))
	t.Cleanup(func() {
		mustExec(t, i.std, "DROP OWNED BY "+quote(role))
		mustExec(t, i.std, "DROP ROLE "+quote(role))
	})
	mustExec(t, i.std, "SELECT outbox_grant('producer', '"+role+"')")
	mustExec(t, i.std, "SELECT outbox_isolate_tenants('"+role+"')")
}

// emit writes an event of a tenant as the role, in a session of the tenant acme, takes it back, and returns its
// SQLSTATE.
func (i isolation) emit(t *testing.T, role, tenant string) string {
	t.Helper()
	tx, err := i.std.BeginTx(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback() }()
	for _, statement := range []string{"SET LOCAL ROLE " + quote(role), "SET LOCAL outbox.tenant_id = 'acme'"} {
		if _, err := tx.ExecContext(t.Context(), statement); err != nil {
			t.Fatal(err)
		}
	}
	_, err = tx.ExecContext(t.Context(), "SELECT outbox_emit('order_created', 'order', '1', '{}', tenant_id => $1)",
		tenant)
	return pgtest.SQLState(err)
}

// A policy's name has 63 bytes, as a role's has: a name made of the role's would be cut, and the policy of the next
// role with the same beginning would take its place.
func TestTenantsOfLongRolesStayIsolated(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		i := newIsolation(t, db)
		stem := pgtest.NewName("producer_")
		stem += strings.Repeat("x", 62-len(stem))
		roles := []string{stem + "1", stem + "2", stem}
		for _, role := range roles {
			i.producer(t, role)
		}
		for _, role := range roles {
			if got := i.emit(t, role, "acme"); got != "" {
				t.Errorf("%s: an event of its own tenant: SQLSTATE %s", role, got)
			}
			if got := i.emit(t, role, "other"); got != "42501" {
				t.Errorf("%s: an event of another tenant: want SQLSTATE 42501, got %q", role, got)
			}
		}
	})
}

// A role that was renamed is still one: it is bound as before, and binding it again makes no second policy.
func TestIsolationFollowsARole(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		i := newIsolation(t, db)
		before, after := pgtest.NewName("producer"), pgtest.NewName("renamed")
		i.producer(t, before)
		mustExec(t, i.std, "ALTER ROLE "+quote(before)+" RENAME TO "+quote(after))
		mustExec(t, i.std, "SELECT outbox_isolate_tenants('"+after+"')")
		defer mustExec(t, i.std, "ALTER ROLE "+quote(after)+" RENAME TO "+quote(before))
		if got := i.emit(t, after, "other"); got != "42501" {
			t.Errorf("an event of another tenant: want SQLSTATE 42501, got %q", got)
		}
		if got := db.Count(t,
			"SELECT count(*) FROM pg_policy WHERE polrelid = '{schema}.outbox_events'::regclass AND NOT polpermissive"); got !=
			1 {
			t.Errorf("there are %d policies that bind", got)
		}
	})
}

// What somebody else has given the name of a policy of ours is not replaced, and a role that does not exist is said.
func TestIsolationRejects(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		i := newIsolation(t, db)
		role := pgtest.NewRole(t, db.Server, "producer")
		isolate := func(role string) string {
			_, err := i.std.ExecContext(context.WithoutCancel(t.Context()), "SELECT outbox_isolate_tenants($1)", role)
			return pgtest.SQLState(err)
		}
		if got := isolate(pgtest.NewName("nobody")); got != "42704" {
			t.Errorf("a role that does not exist: want SQLSTATE 42704, got %q", got)
		}
		var oid string
		if err := i.std.QueryRowContext(t.Context(), "SELECT oid::text FROM pg_roles WHERE rolname = $1",
			role).Scan(&oid); err != nil {
			t.Fatal(err)
		}
		for _, taken := range []string{
			"CREATE POLICY outbox_tenant_" + oid + " ON outbox_dedupe AS RESTRICTIVE USING (true)", // binds everybody
			"CREATE POLICY outbox_tenant_" + oid + " ON outbox_dedupe TO " + quote(role) + " USING (true)",
			"CREATE POLICY outbox_everybody ON outbox_dedupe AS RESTRICTIVE USING (true)",
			"CREATE POLICY outbox_everybody ON outbox_dedupe FOR SELECT USING (true)",
		} {
			mustExec(t, i.std, taken)
			if got := isolate(role); got != "42710" {
				t.Errorf("%s: want SQLSTATE 42710, got %q", taken, got)
			}
			mustExec(t, i.std, "DROP POLICY "+strings.Fields(taken)[2]+" ON outbox_dedupe")
		}
		if got := isolate(role); got != "" {
			t.Errorf("with the names free: SQLSTATE %s", got)
		}
	})
}
