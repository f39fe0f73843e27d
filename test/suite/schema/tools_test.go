package schema

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/pressly/goose/v3"
	"github.com/pressly/goose/v3/database"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// newGoose is goose as a user would set it up: a connection whose search_path is the schema, which is
// there already.
func newGoose(t testing.TB, server pgtest.Server, name string) *goose.Provider {
	t.Helper()
	mustExec(t, pgtest.OpenSQL(t, "pgx", server.URL), "CREATE SCHEMA IF NOT EXISTS "+quote(name))
	std := pgtest.OpenSQL(t, "pgx", withParameter(t, server.URL, "search_path", quote(name)))
	store, err := database.NewStore(database.DialectPostgres, schema.Outbox.VersionTable())
	if err != nil {
		t.Fatal(err)
	}
	provider, err := goose.NewProvider("", std, schema.Outbox.Files(), goose.WithStore(store))
	if err != nil {
		t.Fatal(err)
	}
	return provider
}

func TestGooseInstallsTheSame(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		want := reference(t, server, 0)
		for _, prefix := range []string{"goose", "Weird Goose-1"} {
			name := emptySchema(t, server, prefix)
			provider := newGoose(t, server, name)
			for range 2 {
				if _, err := provider.Up(t.Context()); err != nil {
					t.Fatal(err)
				}
				readCatalog(t, server, name).mustEqual(t, want)
				if _, err := provider.DownTo(t.Context(), 0); err != nil {
					t.Fatal(err)
				}
				if left := readCatalog(t, server, name).withoutVersionTable(); len(left) > 0 {
					t.Errorf("goose left behind:\n%s", strings.Join(left, "\n"))
				}
			}
		}
	})
}

// TestGooseAndOursTakeTurns: each goes on where the other stopped, up and down.
func TestGooseAndOursTakeTurns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "turns")
		provider := newGoose(t, server, name)
		at := func(version int64) {
			t.Helper()
			readCatalog(t, server, name).mustEqual(t, reference(t, server, version))
			theirs, err := provider.GetDBVersion(t.Context())
			if ours := applied(t, server, name); err != nil || theirs != version || int64(len(ours)) != version {
				t.Fatalf("goose says %d (%v), ours %v, want %d", theirs, err, ours, version)
			}
		}
		must := func(_ []*goose.MigrationResult, err error) {
			t.Helper()
			if err != nil {
				t.Fatal(err)
			}
		}
		must(provider.UpTo(t.Context(), 2))
		at(2)
		migrateUp(t, server, schema.Options{Schema: name, Target: 4})
		at(4)
		must(provider.Up(t.Context()))
		at(newest(t))
		migrateDown(t, server, schema.Options{Schema: name, Target: 3})
		at(3)
		must(provider.DownTo(t.Context(), 1))
		at(1)
		migrateUp(t, server, schema.Options{Schema: name})
		at(newest(t))
		must(provider.Up(t.Context())) // nothing to do
		at(newest(t))
	})
}

// psql runs a script, stopping at the first error unless the script says otherwise.
func psql(t testing.TB, address, script string, arguments ...string) error {
	t.Helper()
	program, err := exec.LookPath("psql")
	if err != nil {
		t.Fatal("psql is not installed: `make services` installs it")
	}
	command := exec.CommandContext(t.Context(), program, append([]string{"--no-psqlrc", "--quiet", "--file=-", address},
		arguments...)...)
	command.Stdin = strings.NewReader(script)
	command.Env = append(os.Environ(), "PGOPTIONS=")
	var said bytes.Buffer
	command.Stderr = &said
	if err := command.Run(); err != nil {
		t.Logf("psql: %v\n%s", err, said.String())
		return err
	}
	if strings.Contains(said.String(), "ERROR") {
		t.Errorf("psql said:\n%s", said.String())
	}
	return nil
}

// upHalf is what `sed '/+goose Down/Q'` prints of a file.
func upHalf(t testing.TB, file string) string {
	t.Helper()
	text, err := fs.ReadFile(schema.Outbox.Files(), file)
	if err != nil {
		t.Fatal(err)
	}
	half, _, found := strings.Cut(string(text), "-- +goose Down")
	if !found {
		t.Fatalf("%s has no down half", file)
	}
	return half
}

// TestPsqlInstallsTheSame pipes the files through psql by the command line of docs/reference/schema.md. What psql
// installed has no version table; our migrator adopts it, and goose goes on from there.
func TestPsqlInstallsTheSame(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		want := reference(t, server, 0)
		for _, prefix := range []string{"psql", "Weird psql-1"} {
			name := emptySchema(t, server, prefix)
			script := "CREATE SCHEMA " + quote(name) + ";\nSET search_path = " + quote(name) + ";\n"
			files, err := fs.Glob(schema.Outbox.Files(), "*.sql")
			if err != nil {
				t.Fatal(err)
			}
			for _, file := range files {
				script += upHalf(t, file)
			}
			if err := psql(t, server.URL, script, "--single-transaction", "--set=ON_ERROR_STOP=1"); err != nil {
				t.Fatal(err)
			}
			readCatalog(t, server, name).mustEqual(t, want.withoutVersionTable())
			if got := applied(t, server, name); int64(len(got)) != newest(t) {
				t.Errorf("applied %v, want what psql installed", got)
			}
			migrateUp(t, server, schema.Options{Schema: name})
			readCatalog(t, server, name).mustEqual(t, want)
			if _, err := newGoose(t, server, name).DownTo(t.Context(), 1); err != nil {
				t.Fatal(err)
			}
			readCatalog(t, server, name).mustEqual(t, reference(t, server, 1))
		}
	})
}

// TestAdoptsHalfAnInstallation: psql stopped after two files, and our migrator does the rest.
func TestAdoptsHalfAnInstallation(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, server pgtest.Server) {
		name := emptySchema(t, server, "half")
		script := "CREATE SCHEMA " + quote(name) + "; SET search_path = " + quote(name) + ";\n" + upHalf(t,
			"00001_events.sql") + upHalf(t, "00002_emit.sql")
		if err := psql(t, server.URL, script, "--set=ON_ERROR_STOP=1"); err != nil {
			t.Fatal(err)
		}
		var steps []int64
		migrateUp(t, server, schema.Options{Schema: name, Applied: collect(&steps)})
		if len(steps) == 0 || steps[0] != 3 {
			t.Errorf("steps %v, want them to begin with 3", steps)
		}
		readCatalog(t, server, name).mustEqual(t, reference(t, server, 0))
	})
}
