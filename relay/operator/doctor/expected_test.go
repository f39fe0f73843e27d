package doctor

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/schema"
)

// TestExpectedReadsTheMigrations: of what they make, nothing is overlooked.
func TestExpectedReadsTheMigrations(t *testing.T) {
	t.Parallel()
	want, err := readExpected()
	if err != nil {
		t.Fatal(err)
	}
	migrations, err := schema.Outbox.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	made := map[string]int{}
	for _, migration := range migrations {
		for line := range strings.Lines(migration.Up) {
			for _, kind := range []string{"TABLE", "VIEW", "FUNCTION", "TRIGGER", "INDEX"} {
				if strings.HasPrefix(line, "CREATE "+kind+" ") || strings.HasPrefix(line, "CREATE UNIQUE "+kind+" ") {
					made[kind]++
				}
				if strings.HasPrefix(line, "DROP "+kind+" ") {
					made[kind]--
				}
			}
		}
	}
	for kind, found := range map[string]int{
		"TABLE": len(want.tables), "VIEW": len(want.views), "FUNCTION": len(want.functions), "TRIGGER": len(want.triggers),
		"INDEX": len(want.indexes),
	} {
		if found != made[kind] || found == 0 {
			t.Errorf("%d of %d: %s", found, made[kind], kind)
		}
	}
	if got := want.settings["outbox_events"]["fillfactor"]; got != "49" {
		t.Errorf("the events have fillfactor %q", got)
	}
	for _, trigger := range want.triggers {
		statement := trigger.qualified(func(name string) string { return "s." + name })
		if !strings.Contains(statement, " ON s."+trigger.table) || !strings.Contains(statement,
			"EXECUTE FUNCTION s.outbox_") || strings.Contains(statement, "(NOT outbox_") {
			t.Errorf("not qualified: %s", statement)
		}
	}
}
