package schema

import (
	"context"
	"database/sql"
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/schema"
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

// producer makes a role that emits and is held to its tenant: to the one that is given, or else to what it says.
func (i isolation) producer(t *testing.T, role string, tenant ...string) {
	t.Helper()
	mustExec(t, i.std, "CREATE ROLE "+quote(role))
	t.Cleanup(func() {
		mustExec(t, i.std, "DROP OWNED BY "+quote(role))
		mustExec(t, i.std, "DROP ROLE "+quote(role))
	})
	mustExec(t, i.std, "SELECT outbox_grant('producer', '"+role+"')")
	mustExec(t, i.std, "SELECT outbox_isolate_tenants('"+strings.Join(append([]string{role}, tenant...), "', '")+"')")
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

// X4: a role that is bound to a tenant writes nothing of another, whatever it says about itself, and sees neither
// events nor keys of others.
func TestARoleIsBoundToItsTenant(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		i := newIsolation(t, db)
		role, other := pgtest.NewName("producer"), pgtest.NewName("producer")
		i.producer(t, role, "o''brien") // as SQL writes it
		i.producer(t, other, "other")
		for _, tenant := range []string{"acme", "other", "o''brien"} { // every session says that it is of acme
			if got := i.emit(t, role, tenant); got != "42501" {
				t.Errorf("an event of %q: want SQLSTATE 42501, got %q", tenant, got)
			}
		}
		for bound, tenant := range map[string]string{role: "o'brien", other: "other"} {
			if got := i.emit(t, bound, tenant); got != "" {
				t.Errorf("an event of its own tenant %s: SQLSTATE %s", tenant, got)
			}
			db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', tenant_id => $1::text, "+
				"dedupe_key => $1::text || '/k')", tenant)
		}
		db.Exec(t, "GRANT SELECT ON {schema}.outbox_events TO "+quote(role))
		tx := db.Begin(t)
		if _, err := tx.Exec(t.Context(), "SET LOCAL ROLE "+quote(role)); err != nil {
			t.Fatal(err)
		}
		for _, table := range []string{"outbox_events", "outbox_dedupe"} {
			var tenants string
			query := db.SQL("SELECT string_agg(tenant_id, ' ') FROM {schema}." + table)
			if err := tx.QueryRow(t.Context(), query).Scan(&tenants); err != nil || tenants != "o'brien" {
				t.Errorf("in %s it sees %q, %v", table, tenants, err)
			}
		}
	})
}

// X4: of some roles PostgreSQL asks no policy. Who would isolate one of these is told so.
func TestWhoCannotBeIsolated(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		owner, name := pgtest.NewRole(t, server, "owner"), emptySchema(t, server, "isolated")
		std := pgtest.OpenSQL(t, "pgx", server.URL)
		mustExec(t, std, "CREATE SCHEMA "+quote(name)+" AUTHORIZATION "+quote(owner))
		asOwner := server
		asOwner.URL = pgtest.As(t, server.URL, owner)
		migrateUp(t, asOwner, schema.Options{Schema: name})
		script, err := os.ReadFile("../../../schema/optional/tenant_isolation.sql")
		if err != nil {
			t.Fatal(err)
		}
		owned := pgtest.OpenSQL(t, "pgx", withParameter(t, asOwner.URL, "search_path", name))
		mustExec(t, owned, string(script))
		isolate := func(role, arguments, says string) {
			t.Helper()
			_, err := owned.ExecContext(t.Context(), "SELECT outbox_isolate_tenants("+arguments+")", role)
			if says == "" && err != nil ||
				says != "" && (pgtest.SQLState(err) != "55000" || !strings.Contains(err.Error(), says)) {
				t.Errorf("want %q, got %v", says, err)
			}
		}
		for become, says := range map[string]string{
			"ALTER ROLE {role} SUPERUSER":                          "it is a superuser",
			"ALTER ROLE {role} BYPASSRLS":                          "it is a role with BYPASSRLS",
			"GRANT {owner} TO {role}":                              "it can become " + owner + ", the owner of outbox_dedupe",
			"ALTER ROLE {role} NOINHERIT; GRANT {owner} TO {role}": "it can become " + owner + ", the owner",
			"SELECT {schema}.outbox_grant('operator', '{name}')":   "it is an operator, or has the rights of one",
			"ALTER ROLE {role} NOINHERIT":                          "",
		} {
			role := pgtest.NewRole(t, server, "app")
			mustExec(t, std, strings.NewReplacer("{role}", quote(role), "{owner}", quote(owner), "{name}", role, "{schema}",
				quote(name)).Replace(become))
			isolate(role, "$1", says)
			isolate(role, "$1, 'acme'", says)
		}
		isolate(owner, "$1", "it is the owner of outbox_dedupe")
	})
}
