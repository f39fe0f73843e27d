package schema

import (
	"bytes"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// collect notes the versions of the steps.
func collect(steps *[]int64) func(schema.Migration, time.Duration) {
	return func(migration schema.Migration, _ time.Duration) { *steps = append(*steps, migration.Version) }
}

// dryRun prints what up or down would do.
func dryRun(t testing.TB, server pgtest.Server, up bool, options schema.Options) string {
	t.Helper()
	var script bytes.Buffer
	options.DryRun = &script
	var steps []int64
	options.Applied = collect(&steps)
	// A role that may read and nothing else: a dry run that wrote would fail.
	std := pgtest.OpenSQL(t, "pgx", withParameter(t, server.URL, "default_transaction_read_only", "on"))
	migrate := schema.Outbox.Down
	if up {
		migrate = schema.Outbox.Up
	}
	if err := migrate(t.Context(), std, options); err != nil {
		t.Fatal(err)
	}
	if len(steps) > 0 {
		t.Errorf("a dry run says that it applied %v", steps)
	}
	return script.String()
}

// TestDryRunIsWhatWouldRun: the printed script, piped through psql, does what the migrator does; the dry
// run itself writes nothing.
func TestDryRunIsWhatWouldRun(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		for _, prefix := range []string{"dry", "Weird dry-1"} {
			name := emptySchema(t, server, prefix)
			run := func(up bool, target int64) {
				before := readCatalog(t, server, name)
				script := dryRun(t, server, up, schema.Options{Schema: name, Target: target})
				if after := readCatalog(t, server, name); !slices.Equal(before, after) {
					t.Fatal("the dry run changed the catalog")
				}
				if err := psql(t, server.URL, script); err != nil {
					t.Fatalf("%v\n%s", err, script)
				}
			}
			run(true, 3)
			readCatalog(t, server, name).mustEqual(t, reference(t, server, 3))
			run(true, 0)
			readCatalog(t, server, name).mustEqual(t, reference(t, server, 0))
			run(false, 2)
			readCatalog(t, server, name).mustEqual(t, reference(t, server, 2))
			run(false, 0)
			if left := readCatalog(t, server, name).withoutVersionTable(); len(left) > 0 {
				t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
			}
		}
	})
}

func TestDryRunOfNothingPrintsNothing(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		if script := dryRun(t, db.Server, true, schema.Options{Schema: db.Schema}); script != "" {
			t.Errorf("printed %q", script)
		}
	})
}

// TestDryRunStopsAtAnError: psql does not go on behind a migration that failed.
func TestDryRunStopsAtAnError(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "stop")
		script := strings.Replace(dryRun(t, server, true, schema.Options{Schema: name}), "CREATE TABLE outbox_relays",
			"CREATE TABLE nosuchschema.outbox_relays", 1)
		if err := psql(t, server.URL, script); err == nil {
			t.Error("psql did not fail")
		}
		readCatalog(t, server, name).mustEqual(t, reference(t, server, 2))
	})
}
