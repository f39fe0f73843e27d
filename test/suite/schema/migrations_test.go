package schema

import (
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

func TestUpDownUpIsTheSame(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "updown")
		migrateUp(t, server, schema.Options{Schema: name})
		first := readCatalog(t, server, name)
		migrateDown(t, server, schema.Options{Schema: name})
		migrateUp(t, server, schema.Options{Schema: name})
		readCatalog(t, server, name).mustEqual(t, first)
	})
}

// TestDownLeavesNothing: only the version table stays, because it is what remembers that nothing is there.
func TestDownLeavesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "down")
		migrateUp(t, server, schema.Options{Schema: name})
		migrateDown(t, server, schema.Options{Schema: name})
		if left := readCatalog(t, server, name).withoutVersionTable(); len(left) > 0 {
			t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
		}
		if versions := applied(t, server, name); len(versions) > 0 {
			t.Errorf("applied %v, want none", versions)
		}
	})
}

// TestEachStepAlone goes one version up, back and up again, at every version.
func TestEachStepAlone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "steps")
		for version := range newest(t) {
			if version > 0 {
				migrateUp(t, server, schema.Options{Schema: name, Target: version})
			}
			before := readCatalog(t, server, name)
			migrateUp(t, server, schema.Options{Schema: name, Target: version + 1})
			after := readCatalog(t, server, name)
			after.mustEqual(t, reference(t, server, version+1))
			migrateDown(t, server, schema.Options{Schema: name, Target: version})
			if version > 0 { // before the first step not even the version table is there
				readCatalog(t, server, name).mustEqual(t, before)
			}
			migrateUp(t, server, schema.Options{Schema: name, Target: version + 1})
			readCatalog(t, server, name).mustEqual(t, after)
		}
	})
}

// TestTheSchemaSaysItsVersion: whichever tool applied the migrations, outbox_meta knows how far it went.
func TestTheSchemaSaysItsVersion(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "version")
		pool := openPool(t, server.URL)
		says := func() (version int64) {
			if err := pool.QueryRow(t.Context(),
				"SELECT schema_version FROM "+quote(name)+".outbox_meta").Scan(&version); err != nil {
				t.Fatal(err)
			}
			return version
		}
		for version := int64(1); version <= newest(t); version++ {
			migrateUp(t, server, schema.Options{Schema: name, Target: version})
			if got := says(); got != version {
				t.Errorf("up to %d: it says %d", version, got)
			}
		}
		for version := newest(t) - 1; version > 0; version-- {
			migrateDown(t, server, schema.Options{Schema: name, Target: version})
			if got := says(); got != version {
				t.Errorf("down to %d: it says %d", version, got)
			}
		}
	})
}

// TestAnySchemaName installs into names that need quoting, side by side, and uses them.
func TestAnySchemaName(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		want := reference(t, server, 0)
		var names []string
		for _, prefix := range []string{
			"plain", "Weird Name-1", `with "quotes"`, "it's", `back\slash`, "schema.with.dots", "ünïcode", "select",
		} {
			name := emptySchema(t, server, prefix)
			migrateUp(t, server, schema.Options{Schema: name})
			names = append(names, name)
		}
		pool := openPool(t, withParameter(t, server.URL, "search_path", ""))
		for _, name := range names {
			readCatalog(t, server, name).mustEqual(t, want)
			role := pgtest.NewRole(t, server, "r")
			for _, statement := range []string{
				"SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'k')",
				"SELECT {schema}.outbox_grant('operator', '" + role + "')",
			} {
				if _, err := pool.Exec(t.Context(), strings.ReplaceAll(statement, "{schema}", quote(name))); err != nil {
					t.Errorf("%s: %s: %v", name, statement, err)
				}
			}
			if n := column(t, pool, "SELECT count(*)::text FROM "+quote(name)+".outbox_status"); n[0] != "1" {
				t.Errorf("%s has %s events, want its own 1", name, n[0])
			}
		}
	})
}

// TestSearchPathOfTheRoleDoesNotMatter: the tables go where they were told, not where the role's path leads.
func TestSearchPathOfTheRoleDoesNotMatter(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		want := reference(t, server, 0)
		for _, path := range []string{"", "pg_temp", "information_schema, public", `"$user", nosuchschema`} {
			name, withPath := emptySchema(t, server, "path"), server
			withPath.URL = withParameter(t, server.URL, "search_path", path)
			migrateUp(t, withPath, schema.Options{Schema: name})
			readCatalog(t, server, name).mustEqual(t, want)
		}
	})
}

func TestVersionsOutOfRangeAreRejected(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		std := pgtest.OpenSQL(t, "pgx", server.URL)
		for _, target := range []int64{-1, newest(t) + 1} {
			for verb, migrate := range map[string]func(schema.Options) error{
				"up":   func(o schema.Options) error { return schema.Outbox.Up(t.Context(), std, o) },
				"down": func(o schema.Options) error { return schema.Outbox.Down(t.Context(), std, o) },
			} {
				name := emptySchema(t, server, "range")
				err := migrate(schema.Options{Schema: name, Target: target})
				if err == nil || !strings.Contains(err.Error(), "there is no version") {
					t.Errorf("%s to %d: %v", verb, target, err)
				}
			}
		}
	})
}

// TestANewerSchemaIsLeftAlone: an older program does nothing to go up, and refuses to go down.
func TestANewerSchemaIsLeftAlone(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "INSERT INTO {schema}.outbox_schema_version (version_id, is_applied) VALUES ($1, true)", newest(t)+1)
		before := readCatalog(t, db.Server, db.Schema)
		migrateUp(t, db.Server, schema.Options{Schema: db.Schema})
		err := schema.Outbox.Down(t.Context(), pgtest.OpenSQL(t, "pgx", db.URL), schema.Options{Schema: db.Schema})
		if err == nil || !strings.Contains(err.Error(), "go down with the program that went up") {
			t.Errorf("down: %v", err)
		}
		if after := readCatalog(t, db.Server, db.Schema); !slices.Equal(before, after) {
			t.Error("the catalog changed")
		}
	})
}

// TestOnlyUTF8: JSON is UTF-8, so another encoding is refused before anything is made.
func TestOnlyUTF8(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		std := pgtest.OpenSQL(t, "pgx", server.URL)
		name := pgtest.NewName("ascii")
		mustExec(t, std, "CREATE DATABASE "+name+" ENCODING 'SQL_ASCII' LOCALE 'C' TEMPLATE template0")
		t.Cleanup(func() { mustExec(t, std, "DROP DATABASE "+name+" WITH (FORCE)") })
		other := server
		other.URL = strings.Replace(server.URL, "/posthaste", "/"+name, 1)
		err := schema.Outbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", other.URL), schema.Options{})
		if pgtest.SQLState(err) != "0A000" || !strings.Contains(err.Error(), "needs UTF8") {
			t.Errorf("got %v", err)
		}
		if left := readCatalog(t, other, "public"); len(left) > 0 {
			t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
		}
	})
}
