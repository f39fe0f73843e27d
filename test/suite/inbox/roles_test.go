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
