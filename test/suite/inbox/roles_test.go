package inbox_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// newRole makes a role that can log in and has this part; "" is a stranger who may look into the schema.
func newRole(t testing.TB, db *pgtest.DB, part string) string {
	t.Helper()
	role := pgtest.NewRole(t, db.Server, "inbox_role")
	if part == "" {
		db.Exec(t, "GRANT USAGE ON SCHEMA {schema} TO "+quote(role))
	} else {
		db.Exec(t, "SELECT {schema}.inbox_grant($1, $2)", part, role)
	}
	return role
}

// operations are what somebody may try, and which parts may.
var operations = []struct{ name, sql, may string }{
	{
		"mark", "INSERT INTO {schema}.inbox_handled (consumer, event_id) VALUES ('mailer', gen_random_uuid()) ON CONFLICT " +
			"DO NOTHING", "consumer",
	},
	{
		"mark what is handled", "INSERT INTO {schema}.inbox_handled (consumer, event_id) VALUES ('mailer', " +
			"'0198c0de-0000-7000-8000-000000000001') ON CONFLICT DO NOTHING", "consumer",
	},
	{
		"mark with a time", "INSERT INTO {schema}.inbox_handled (consumer, event_id, handled_at) VALUES ('mailer', " +
			"gen_random_uuid(), 'epoch')", "",
	},
	{"call inbox_first", "SELECT {schema}.inbox_first('mailer', gen_random_uuid())", "consumer"},
	{
		"call inbox_newer", "SELECT {schema}.inbox_newer('mailer', 'default', 'order', '1', 3), " +
			"{schema}.inbox_newer('mailer', 'default', 'order', '2', 3)", "consumer",
	},
	{"call inbox_clean", "SELECT {schema}.inbox_clean()", "janitor"},
	{"call inbox_grant", "SELECT {schema}.inbox_grant('viewer', 'postgres')", ""},
	{"call inbox_bind", "SELECT {schema}.inbox_bind(current_user, '{mailer}')", ""},
	{"call inbox_seal", "SELECT {schema}.inbox_seal()", ""},
	{"read marks", "SELECT consumer, event_id, handled_at FROM {schema}.inbox_handled", "viewer"},
	{"read the times of marks", "SELECT handled_at FROM {schema}.inbox_handled", "janitor viewer"},
	{"read aggregates", "SELECT aggregate_id, seq FROM {schema}.inbox_newest", "consumer viewer"},
	{"forget a mark", "DELETE FROM {schema}.inbox_handled WHERE handled_at < 'epoch'", "janitor"},
	{"forget an aggregate", "DELETE FROM {schema}.inbox_newest WHERE applied_on < '1970-01-01'", "janitor"},
	{"change a mark", "UPDATE {schema}.inbox_handled SET handled_at = now()", ""},
	{"empty the inbox", "TRUNCATE {schema}.inbox_handled", ""},
	{"read what retention did", "SELECT halt_reason FROM {schema}.inbox_retention", "janitor viewer"},
	{"change what retention did", "UPDATE {schema}.inbox_retention SET cut_off = now()", "janitor"},
	{"read the version", "SELECT schema_version FROM {schema}.inbox_meta", "consumer janitor viewer"},
	{"change the version", "UPDATE {schema}.inbox_meta SET schema_version = 1", ""},
}

// wrongCells asks every operation as every part, and names what is not as the table says.
func wrongCells(t testing.TB, db *pgtest.DB, pools map[string]*pgxpool.Pool) (wrong []string) {
	t.Helper()
	for _, o := range operations {
		for part, pool := range pools {
			want := "42501"
			if slices.Contains(strings.Fields(o.may), part) {
				want = ""
			}
			tx, err := pool.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), db.SQL(o.sql))
			_ = tx.Rollback(t.Context())
			if got := pgtest.SQLState(err); got != want {
				wrong = append(wrong, part+": "+o.name+": "+got)
			}
		}
	}
	return wrong
}

// TestRoles: each part may do what it needs, through the Go functions as well, and nothing else.
func TestRoles(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "SELECT {schema}.inbox_first('mailer', '0198c0de-0000-7000-8000-000000000001'), "+
			"{schema}.inbox_newer('mailer', 'default', 'order', '1', 2)")
		pools, roles := map[string]*pgxpool.Pool{}, map[string]string{}
		for _, part := range []string{"consumer", "janitor", "viewer", ""} {
			roles[part] = newRole(t, db, part)
			pools[part] = db.Open(t, pgtest.As(t, db.URL, roles[part]), "search_path", "")
		}
		for _, cell := range wrongCells(t, db, pools) {
			t.Error(cell)
		}
		err := outbox.InTx(t.Context(), pools["consumer"], func(ctx context.Context, tx pgx.Tx) error {
			in := outbox.InSchema(tx, db.Schema)
			if yes, err := inbox.First(ctx, in, consumer, outbox.NewID()); err != nil || !yes {
				t.Errorf("the consumer's first: %t, %v", yes, err)
			}
			if yes, err := inbox.Newer(ctx, in, consumer, outbox.Aggregate{Type: "order", ID: "1"}, 3); err != nil || !yes {
				t.Errorf("the consumer's newer: %t, %v", yes, err)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
		// The table itself must be able to find a wrong grant.
		db.Exec(t, "GRANT SELECT (consumer, event_id, handled_at) ON {schema}.inbox_handled TO "+quote(roles["consumer"]))
		db.Exec(t, "REVOKE EXECUTE ON FUNCTION {schema}.inbox_clean FROM "+quote(roles["janitor"]))
		if found := wrongCells(t, db, pools); !slices.Contains(found, "consumer: read marks: ") ||
			!slices.Contains(found, "janitor: call inbox_clean: 42501") {
			t.Errorf("the mutants of the grants were not found: %q", found)
		}
		if _, err := db.Pool.Exec(t.Context(),
			db.SQL("SELECT {schema}.inbox_grant('relay', 'postgres')")); pgtest.SQLState(err) != "22023" {
			t.Errorf("a part that is none: %v", err)
		}
	})
}

// X10: under the name of another consumer, a role that is bound to its own marks no event as handled and remembers no
// number; either would make the other one leave events out for good.
func TestARoleIsBoundToItsConsumers(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "SELECT {schema}.inbox_newer('mailer', 'default', 'order', '1', 2)")
		roles := map[string]string{"biller": newRole(t, db, ""), "mailer": newRole(t, db, ""), "any": newRole(t, db, "")}
		db.Exec(t, "SELECT {schema}.inbox_grant('consumer', $1, '{biller,biller.retries}')", roles["biller"])
		db.Exec(t, "SELECT {schema}.inbox_grant('consumer', $1, '{biller}')", roles["mailer"])
		db.Exec(t, "SELECT {schema}.inbox_grant('consumer', $1, '{mailer}')", roles["mailer"]) // in the place of the other
		db.Exec(t, "SELECT {schema}.inbox_grant('consumer', $1)", roles["mailer"])             // changes nothing of it
		db.Exec(t, "SELECT {schema}.inbox_grant('consumer', $1)", roles["any"])
		for role, may := range map[string]string{
			"biller": "biller biller.retries", "mailer": "mailer", "any": "biller biller.retries mailer",
		} {
			pool := db.Open(t, pgtest.As(t, db.URL, roles[role]), "search_path", "")
			for _, name := range []string{"biller", "biller.retries", "mailer"} {
				want := "42501"
				if slices.Contains(strings.Fields(may), name) {
					want = ""
				}
				for _, statement := range []string{
					"SELECT {schema}.inbox_first($1, gen_random_uuid())",
					"INSERT INTO {schema}.inbox_handled (consumer, event_id) VALUES ($1, gen_random_uuid()) ON CONFLICT DO NOTHING",
					"SELECT {schema}.inbox_newer($1, 'default', 'order', '1', 3)",
					"SELECT {schema}.inbox_newer($1, 'default', 'order', '2', 1)",
				} {
					if got := tryAs(t, db, pool, statement, name); got != want {
						t.Errorf("%s as %s: %s: SQLSTATE %q, want %q", role, name, statement, got, want)
					}
				}
			}
		}
		pool := db.Open(t, pgtest.As(t, db.URL, roles["biller"]), "search_path", "")
		if _, err := pool.Exec(t.Context(), db.SQL("UPDATE {schema}.inbox_newest SET seq = 9000000000")); err != nil {
			t.Fatal(err)
		}
		if n := db.Count(t, "SELECT seq FROM {schema}.inbox_newest WHERE consumer = 'mailer'"); n != 2 {
			t.Errorf("the newest of the other consumer is %d", n)
		}
		// Who deletes and who looks is not bound.
		for part, statement := range map[string]string{
			"janitor": "SELECT {schema}.inbox_clean()", "viewer": "SELECT 1 / count(*) FROM {schema}.inbox_newest",
		} {
			other := db.Open(t, pgtest.As(t, db.URL, newRole(t, db, part)), "search_path", "")
			if _, err := other.Exec(t.Context(), db.SQL(statement)); err != nil {
				t.Errorf("%s: %v", part, err)
			}
		}
	})
}

// tryAs runs a statement, takes it back, and returns its SQLSTATE.
func tryAs(t testing.TB, db *pgtest.DB, pool *pgxpool.Pool, statement string, args ...any) string {
	t.Helper()
	tx, err := pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(t.Context())) }()
	_, err = tx.Exec(t.Context(), db.SQL(statement), args...)
	return pgtest.SQLState(err)
}

// Of some roles PostgreSQL asks no policy; and only a consumer has consumers.
func TestWhoCannotBeBound(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		superuser, bypass, plain := newRole(t, db, ""), newRole(t, db, ""), newRole(t, db, "")
		db.Exec(t, "ALTER ROLE "+quote(superuser)+" SUPERUSER")
		db.Exec(t, "ALTER ROLE "+quote(bypass)+" BYPASSRLS")
		for _, c := range []struct{ part, role, state, says string }{
			{"consumer", superuser, "55000", "it is a superuser"},
			{"consumer", bypass, "55000", "it is a role with BYPASSRLS"},
			{"janitor", plain, "22023", "only a consumer"},
			{"consumer", pgtest.NewName("nobody"), "42704", "does not exist"},
			{"consumer", plain, "", ""},
		} {
			_, err := db.Pool.Exec(t.Context(), db.SQL("SELECT {schema}.inbox_grant($1, $2, '{mailer}')"), c.part, c.role)
			if pgtest.SQLState(err) != c.state || err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("%s %s: want %q, got %v", c.part, c.role, c.says, err)
			}
		}
		// By SET ROLE it would be another consumer, which is not bound.
		member, shared := newRole(t, db, ""), newRole(t, db, "consumer")
		db.Exec(t, "GRANT "+quote(shared)+" TO "+quote(member))
		if _, err := db.Pool.Exec(t.Context(), db.SQL("SELECT {schema}.inbox_grant('consumer', $1, '{mailer}')"),
			member); pgtest.SQLState(err) != "55000" || !strings.Contains(err.Error(), "it can become "+shared) {
			t.Errorf("one that can become another consumer: %v", err)
		}
		// A member of the owner: as postgres owns the tables here, it can become a superuser as well.
		db.Exec(t, "GRANT "+quote(superuser)+" TO "+quote(plain))
		if _, err := db.Pool.Exec(t.Context(), db.SQL("SELECT {schema}.inbox_grant('consumer', $1, '{mailer}')"),
			plain); pgtest.SQLState(err) != "55000" || !strings.Contains(err.Error(), "it can become "+superuser) {
			t.Errorf("one that can become a superuser: %v", err)
		}
	})
}

// X11: where everybody may create objects, a function of theirs can take the place of one that ours mean.
func TestASchemaWhereEverybodyMayCreateIsRejected(t *testing.T) {
	t.Parallel()
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			db := emptySchema(t, server, "open")
			db.Exec(t, "CREATE SCHEMA {schema}")
			db.Exec(t, "GRANT CREATE ON SCHEMA {schema} TO PUBLIC")
			err := schema.Inbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", db.URL), schema.Options{Schema: db.Schema})
			if pgtest.SQLState(err) != "55000" || !strings.Contains(err.Error(), "REVOKE CREATE ON SCHEMA "+db.Schema) {
				t.Errorf("got %v", err)
			}
			db.Exec(t, "REVOKE CREATE ON SCHEMA {schema} FROM PUBLIC")
			migrate(t, db, schema.Inbox.Up, schema.Options{})
		})
	}
}
