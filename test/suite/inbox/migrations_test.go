package inbox_test

import (
	"context"
	"database/sql"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// migrate goes up or down in the test's schema.
func migrate(t testing.TB, db *pgtest.DB, way func(context.Context, *sql.DB, schema.Options) error,
	options schema.Options,
) {
	t.Helper()
	options.Schema = db.Schema
	if err := way(t.Context(), pgtest.OpenSQL(t, "pgx", db.URL), options); err != nil {
		t.Fatalf("migrate on %s: %v\nIs it running? `make services` starts it.", db.Name, err)
	}
}

// catalog is what PostgreSQL knows about a schema, a line an object, without the version table, which not every tool
// writes.
func catalog(t testing.TB, db *pgtest.DB) []string {
	t.Helper()
	query, err := os.ReadFile("../schema/testdata/catalog.sql") // that of the outbox's migrations
	if err != nil {
		t.Fatal(err)
	}
	rows, err := db.Pool.Query(t.Context(), string(query), db.Schema)
	if err != nil {
		t.Fatal(err)
	}
	lines, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		t.Fatal(err)
	}
	lines = slices.DeleteFunc(lines, func(line string) bool { return strings.Contains(line, schema.Inbox.VersionTable()) })
	for i, line := range lines {
		lines[i] = strings.NewReplacer(quote(db.Schema), "{schema}", db.Schema, "{schema}").Replace(line)
	}
	return lines
}

func mustEqual(t testing.TB, what string, got, want []string) {
	t.Helper()
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("%s: only here:    %s", what, line)
		}
	}
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("%s: missing here: %s", what, line)
		}
	}
}

// TestMigrations: each step up, back and up again is the same; ours, goose and plain SQL end alike; down leaves
// nothing.
func TestMigrations(t *testing.T) {
	t.Parallel()
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			migrations, err := schema.Inbox.Migrations()
			if err != nil {
				t.Fatal(err)
			}
			ours := emptySchema(t, server, "Ours 1")
			for i, migration := range migrations {
				migrate(t, ours, schema.Inbox.Up, schema.Options{Target: migration.Version})
				after := catalog(t, ours)
				if i > 0 {
					migrate(t, ours, schema.Inbox.Down, schema.Options{Target: migration.Version - 1})
					migrate(t, ours, schema.Inbox.Up, schema.Options{Target: migration.Version})
				}
				mustEqual(t, migration.Name, catalog(t, ours), after)
				if version := ours.Count(t, "SELECT schema_version FROM {schema}.inbox_meta"); version != int(migration.Version) {
					t.Errorf("%s: inbox_meta says %d", migration.Name, version)
				}
			}
			want := catalog(t, ours)
			if len(want) < 30 {
				t.Fatalf("a catalog of %d lines compares nothing", len(want))
			}

			goosed := emptySchema(t, server, "goose")
			goosed.Exec(t, "CREATE SCHEMA {schema}")
			provider := newGoose(t, goosed)
			if _, err := provider.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "goose", catalog(t, goosed), want)
			migrate(t, goosed, schema.Inbox.Down, schema.Options{Target: 1}) // each goes on where the other stopped
			if _, err := provider.Up(t.Context()); err != nil {
				t.Fatal(err)
			}
			mustEqual(t, "goose after ours", catalog(t, goosed), want)

			piped := emptySchema(t, server, "piped")
			pipe(t, piped)
			mustEqual(t, "plain SQL", catalog(t, piped), want)
			migrate(t, piped, schema.Inbox.Up, schema.Options{}) // adopts it
			versions, err := schema.Inbox.Applied(t.Context(), pgtest.OpenSQL(t, "pgx", server.URL), piped.Schema)
			if err != nil || len(versions) != len(migrations) {
				t.Errorf("adopted %v, %v", versions, err)
			}

			migrate(t, ours, schema.Inbox.Down, schema.Options{})
			if left := catalog(t, ours); len(left) > 0 {
				t.Errorf("left behind:\n%s", strings.Join(left, "\n"))
			}
		})
	}
}

func newGoose(t testing.TB, db *pgtest.DB) *goose.Provider {
	t.Helper()
	store, err := database.NewStore(database.DialectPostgres, schema.Inbox.VersionTable())
	if err != nil {
		t.Fatal(err)
	}
	std := pgtest.OpenSQL(t, "pgx", db.URL+"&search_path="+db.Schema)
	provider, err := goose.NewProvider("", std, schema.Inbox.Files(), goose.WithStore(store))
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

// pipe runs the upper halves of the files as one script, as psql would.
func pipe(t testing.TB, db *pgtest.DB) {
	t.Helper()
	names, err := fs.Glob(schema.Inbox.Files(), "*.sql")
	if err != nil {
		t.Fatal(err)
	}
	script := db.SQL("CREATE SCHEMA {schema}; SET search_path = {schema};\n")
	for _, name := range names {
		text, err := fs.ReadFile(schema.Inbox.Files(), name)
		if err != nil {
			t.Fatal(err)
		}
		up, _, _ := strings.Cut(string(text), "-- +goose Down")
		script += up
	}
	if _, err := pgtest.OpenSQL(t, "pgx", db.URL+"&default_query_exec_mode=simple_protocol").ExecContext(t.Context(),
		script); err != nil {
		t.Fatal(err)
	}
}

// TestBesideAnOutbox: the two sets share a schema, and each goes without the other.
func TestBesideAnOutbox(t *testing.T) {
	t.Parallel()
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, server)
			before := catalog(t, db)
			migrate(t, db, schema.Inbox.Up, schema.Options{})
			migrate(t, db, schema.Outbox.Down, schema.Options{Target: 1})
			migrate(t, db, schema.Outbox.Up, schema.Options{})
			db.Exec(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')")
			db.Exec(t, "SELECT {schema}.inbox_first('mailer', gen_random_uuid())")
			migrate(t, db, schema.Inbox.Down, schema.Options{})
			mustEqual(t, "without the inbox", catalog(t, db), before)
		})
	}
}
