package schema

import (
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestTheDocumentNamesEverything: docs/reference/schema.md has every table, column, index, trigger and function.
func TestTheDocumentNamesEverything(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		text, err := os.ReadFile("../../../docs/reference/schema.md")
		if err != nil {
			t.Fatal(err)
		}
		names := column(t, db.Pool, `
			SELECT relname::text FROM pg_class WHERE relnamespace = $1::regnamespace 
			AND relname NOT LIKE 'outbox\_schema\_version\_%'
			   AND (relkind IN ('r', 'v', 'i') OR relname = 'outbox_events_seq_seq')
			UNION SELECT attname::text FROM pg_attribute a JOIN pg_class c ON c.oid = a.attrelid
			   WHERE relnamespace = $1::regnamespace AND relkind = 'r' AND relname <> 'outbox_schema_version' AND attnum > 0
			UNION SELECT proname::text FROM pg_proc WHERE pronamespace = $1::regnamespace
			UNION SELECT tgname::text FROM pg_trigger t JOIN pg_class c ON c.oid = t.tgrelid 
			WHERE relnamespace = $1::regnamespace AND NOT tgisinternal`, db.Schema)
		if len(names) < 80 {
			t.Fatalf("only %d names", len(names))
		}
		for _, name := range names {
			if !strings.Contains(string(text), "`"+name+"`") {
				t.Errorf("docs/reference/schema.md does not name `%s`", name)
			}
		}
	})
}
