package schema

import (
	_ "embed"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

//go:embed testdata/catalog.sql
var catalogQuery string

// A catalog is what PostgreSQL knows about a schema, a line an object, with the schema's name taken out:
// two schemas with the same catalog are the same schema.
type catalog []string

func readCatalog(t testing.TB, server pgtest.Server, name string) catalog {
	t.Helper()
	// An empty search_path, so that every name is printed with its schema.
	pool := openPool(t, withParameter(t, server.URL, "search_path", ""))
	var pairs []string
	for _, form := range []string{quote(name), name} {
		literal := "'" + strings.ReplaceAll(form, "'", "''") + "'"
		escaped := " E" + strings.ReplaceAll(literal, `\`, `\\`) // PostgreSQL prints a backslash in either way
		pairs = append(pairs, escaped, "'{schema}'", literal, "'{schema}'", form+".", "{schema}.")
	}
	named := strings.NewReplacer(pairs...)
	lines := column(t, pool, catalogQuery, name)
	for i, line := range lines {
		lines[i] = named.Replace(line)
	}
	return lines
}

func openPool(t testing.TB, address string) *pgxpool.Pool {
	t.Helper()
	pool, err := pgxpool.New(t.Context(), address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return pool
}

// without leaves out the lines about the version table, which not every tool writes.
func (c catalog) withoutVersionTable() catalog {
	return slices.DeleteFunc(slices.Clone(c), func(line string) bool {
		return strings.Contains(line, schema.Outbox.VersionTable())
	})
}

// mustEqual shows each line that only one side has.
func (c catalog) mustEqual(t testing.TB, want catalog) {
	t.Helper()
	if len(want) < 98 { // as many lines as PostgreSQL 15 has of it; 18 has more, because it names its NOT NULLs
		t.Fatalf("a catalog of %d lines compares nothing", len(want))
	}
	for _, line := range c {
		if !slices.Contains(want, line) {
			t.Errorf("only here:     %s", line)
		}
	}
	for _, line := range want {
		if !slices.Contains(c, line) {
			t.Errorf("missing here: %s", line)
		}
	}
	if len(c) != len(want) {
		t.Errorf("%d lines, want %d", len(c), len(want))
	}
}

// reference is the catalog of a schema that our own migrator installed at once, up to a version.
func reference(t testing.TB, server pgtest.Server, version int64) catalog {
	t.Helper()
	name := emptySchema(t, server, "reference")
	migrateUp(t, server, schema.Options{Schema: name, Target: version})
	return readCatalog(t, server, name)
}

// TestCatalogSeesChanges: the comparison that the other tests trust finds each kind of change.
func TestCatalogSeesChanges(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "changed")
		migrateUp(t, server, schema.Options{Schema: name})
		before := readCatalog(t, server, name)
		std := pgtest.OpenSQL(t, "pgx", withParameter(t, server.URL, "search_path", quote(name)))
		for _, change := range []string{
			"ALTER TABLE outbox_events ADD extra text",
			"ALTER TABLE outbox_events ALTER tenant_id SET DEFAULT 'x'",
			"ALTER TABLE outbox_events ALTER seq SET CACHE 20",
			"ALTER TABLE outbox_events SET (fillfactor = 90)",
			"ALTER TABLE outbox_held DROP CONSTRAINT outbox_held_kind",
			"DROP INDEX outbox_held_line",
			"DROP TRIGGER outbox_events_fill_lane ON outbox_events",
			"DROP TRIGGER outbox_events_append_only ON outbox_events",
			"ALTER TABLE outbox_events DISABLE TRIGGER outbox_events_keep_open",
			"ALTER FUNCTION outbox_emit RESET search_path",
			"GRANT EXECUTE ON FUNCTION outbox_grant TO PUBLIC",
			"GRANT SELECT (payload_json) ON outbox_events TO PUBLIC",
			"COMMENT ON TABLE outbox_dlq IS 'other'",
			"ALTER VIEW outbox_status SET (security_invoker = false)",
			"CREATE TYPE outbox_mood AS ENUM ('sad')",
			"ALTER DOMAIN outbox_payload DROP CONSTRAINT outbox_events_payload_size",
		} {
			mustExec(t, std, change)
			after := readCatalog(t, server, name)
			if slices.Equal(before, after) {
				t.Errorf("%s: the catalog is the same", change)
			}
			before = after
		}
	})
}
