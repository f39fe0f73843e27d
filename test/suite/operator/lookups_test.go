package operator

import (
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestLookupsAreAddedAndDropped: by the command, twice, over what a building that was cut off has left, and by nobody
// but the owner.
func TestLookupsAreAddedAndDropped(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		e := newEnv(t, db)
		stands := func() string {
			t.Helper()
			states, err := e.viewer.LookupStates(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var list []string
			for _, is := range states {
				word := "missing"
				if is.There && is.Valid {
					word = "there"
				} else if is.There {
					word = "invalid"
				}
				list = append(list, string(is.Lookup)+" "+word)
			}
			return strings.Join(list, ", ")
		}
		want := func(want string) {
			t.Helper()
			if got := stands(); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		}
		want("published missing, type missing")
		e.want(t, "", 0, `^type: added in \S+\n$`, "migrate", "lookups", "add", "type")
		want("published missing, type there")
		e.want(t, "", 0, `^published: added in \S+\ntype: was there already\n$`, "migrate", "lookups", "add")
		want("published there, type there")
		// What is left when CREATE INDEX CONCURRENTLY is cut off.
		e.Exec(t, `UPDATE pg_index SET indisvalid = false
			WHERE indexrelid = '{schema}.outbox_events_event_type'::regclass`)
		want("published there, type invalid")
		if found, err := e.viewer.Events(t.Context(), operator.Filter{Types: []string{"a"}}, operator.Page{}); err != nil ||
			found.Window.By != "newest" {
			t.Errorf("half an index is used: %+v, %v", found, err)
		}
		e.want(t, "", 0, `^type: added in \S+\n$`, "migrate", "lookups", "add", "type")
		want("published there, type there")
		if code, _, stderr := e.call(t, e.role, "migrate", "lookups", "drop", "type"); code == 0 ||
			!strings.Contains(stderr, "it takes the owner of the tables") {
			t.Errorf("exit code %d: %s", code, stderr)
		}
		e.want(t, "", 0, `^published: dropped in \S+\ntype: dropped in \S+\n$`, "migrate", "lookups", "drop")
		want("published missing, type missing")
		e.want(t, "", 0, `^type: was not there\n$`, "migrate", "lookups", "drop", "type")
	})
}

// TestLookupsAreThoseOfTheFile: who runs schema/optional/lookups.sql gets the same.
func TestLookupsAreThoseOfTheFile(t *testing.T) {
	t.Parallel()
	file, err := os.ReadFile("../../../schema/optional/lookups.sql")
	if err != nil {
		t.Fatal(err)
	}
	one := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	for _, name := range []string{"type", "published"} {
		statement, err := os.ReadFile("../../../relay/operator/sql/lookup_add_" + name + ".sql")
		if err != nil {
			t.Fatal(err)
		}
		want := one(strings.ReplaceAll(string(statement), "{schema}.", ""))
		if !strings.Contains(one(string(file)), want+";") {
			t.Errorf("lookups.sql has no %s", want)
		}
	}
}
