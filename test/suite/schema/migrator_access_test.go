package schema

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// TestEveryDriverMigrates: with pgx and lib/pq, directly and through PgBouncer in transaction mode.
func TestEveryDriverMigrates(t *testing.T) {
	t.Parallel()
	first := pgtest.Servers()[0]
	for name, way := range map[string]struct{ driver, address string }{
		"pgx":                  {"pgx", first.URL},
		"pgx, simple protocol": {"pgx", withParameter(t, first.URL, "default_query_exec_mode", "simple_protocol")},
		"lib/pq":               {"postgres", first.URL},
		"pgx, PgBouncer":       {"pgx", withParameter(t, services.PgBouncer18(), "default_query_exec_mode", "exec")},
		"pgx, PgBouncer, simple": {
			"pgx", withParameter(t, services.PgBouncer18(), "default_query_exec_mode", "simple_protocol"),
		},
		"lib/pq, PgBouncer":              {"postgres", services.PgBouncer18()},
		"lib/pq, another server version": {"postgres", pgtest.Servers()[1].URL},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := first
			if way.address == pgtest.Servers()[1].URL {
				server = pgtest.Servers()[1]
			}
			schemaName := emptySchema(t, server, "driver")
			std := pgtest.OpenSQL(t, way.driver, way.address)
			options := schema.Options{Schema: schemaName}
			for _, migrate := range []func() error{
				func() error { return schema.Outbox.Up(t.Context(), std, options) },
				func() error { return schema.Outbox.Down(t.Context(), std, options) },
				func() error { return schema.Outbox.Up(t.Context(), std, options) },
			} {
				if err := migrate(); err != nil {
					t.Fatal(err)
				}
			}
			readCatalog(t, server, schemaName).mustEqual(t, reference(t, server, 0))
			if got, err := schema.Outbox.Applied(t.Context(), std, schemaName); err != nil || int64(len(got)) != newest(t) {
				t.Errorf("applied %v, %v", got, err)
			}
		})
	}
}

// TestTheOwnerOfASchemaIsEnough: a role that owns one schema and may do nothing else in the cluster.
func TestTheOwnerOfASchemaIsEnough(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "owned")
		owner := pgtest.NewRole(t, server, "owner")
		other := pgtest.NewRole(t, server, "other")
		mustExec(t, pgtest.OpenSQL(t, "pgx", server.URL), "CREATE SCHEMA "+quote(name)+" AUTHORIZATION "+quote(owner))
		asOwner := server
		asOwner.URL = pgtest.As(t, server.URL, owner)
		migrateUp(t, asOwner, schema.Options{Schema: name})
		got := readCatalog(t, server, name)
		for i, line := range got {
			got[i] = strings.ReplaceAll(line, owner, "postgres")
		}
		got.mustEqual(t, reference(t, server, 0))
		pool := openPool(t, asOwner.URL)
		for _, part := range []string{"producer", "relay", "janitor", "viewer", "operator", "reader"} {
			if _, err := pool.Exec(t.Context(), "SELECT "+quote(name)+".outbox_grant($1, $2)", part, other); err != nil {
				t.Errorf("grant %s: %v", part, err)
			}
		}
		migrateDown(t, asOwner, schema.Options{Schema: name})
	})
}

// TestErrorsSayWhatToDo: what a person meets on the first day comes with a hint.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		stranger := pgtest.NewRole(t, server, "stranger")
		there := emptySchema(t, server, "there")
		mustExec(t, pgtest.OpenSQL(t, "pgx", server.URL), "CREATE SCHEMA "+quote(there))
		mustExec(t, pgtest.OpenSQL(t, "pgx", server.URL), "GRANT USAGE ON SCHEMA "+quote(there)+" TO "+quote(stranger))
		for name, c := range map[string]struct{ address, schema, state, hint string }{
			"may not create a schema": {
				pgtest.As(t, server.URL, stranger), emptySchema(t, server, "missing"), "42501", "have somebody create the schema",
			},
			"may not create in it": {pgtest.As(t, server.URL, stranger), there, "42501", "grant you CREATE on it"},
			"read-only": {
				withParameter(t, server.URL, "default_transaction_read_only", "on"), there, "25006", "connect to the primary",
			},
		} {
			err := schema.Outbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", c.address), schema.Options{Schema: c.schema})
			if pgtest.SQLState(err) != c.state || !strings.Contains(err.Error(), c.hint) ||
				!strings.Contains(err.Error(), "00001_events was not applied") {
				t.Errorf("%s: %v", name, err)
			}
		}
	})
}

// X11: where everybody may create objects, a function of theirs can take the place of one that ours mean.
func TestASchemaWhereEverybodyMayCreateIsRejected(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name, std := emptySchema(t, server, "open"), pgtest.OpenSQL(t, "pgx", server.URL)
		mustExec(t, std, "CREATE SCHEMA "+quote(name))
		for _, before := range []int64{0, 3} { // at the first migration, and at a later one
			if before > 0 {
				migrateUp(t, server, schema.Options{Schema: name, Target: before})
			}
			mustExec(t, std, "GRANT CREATE ON SCHEMA "+quote(name)+" TO PUBLIC")
			err := schema.Outbox.Up(t.Context(), std, schema.Options{Schema: name})
			if pgtest.SQLState(err) != "55000" || !strings.Contains(err.Error(), "REVOKE CREATE ON SCHEMA "+name) {
				t.Errorf("behind version %d: %v", before, err)
			}
			if got := applied(t, server, name); int64(len(got)) != before {
				t.Errorf("behind version %d: applied %v", before, got)
			}
			mustExec(t, std, "REVOKE CREATE ON SCHEMA "+quote(name)+" FROM PUBLIC")
		}
		migrateUp(t, server, schema.Options{Schema: name})
	})
}
