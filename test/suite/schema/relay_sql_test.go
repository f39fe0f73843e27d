package schema

import (
	"os"
	"strings"
	"testing"
)

// relaySQL is a statement of the relay, from its own file: here it is run against tables that the relay's
// tests do not have.
func relaySQL(t testing.TB, name string) string {
	t.Helper()
	lost := strings.NewReplacer("{lanes}", "$1", "{relay}", "$7", "{token}", "$8").
		Replace(fileSQL(t, "internal/pgstore/sql/lost")) // as a read numbers its parameters
	return strings.NewReplacer("{lost}", lost, "{incarnation}", "'this server'").
		Replace(fileSQL(t, "internal/pgstore/sql/"+name))
}

// janitorSQL is a statement of retention's, from its own file.
func janitorSQL(t testing.TB, name string) string {
	t.Helper()
	return fileSQL(t, "retention/sql/"+name)
}

// operatorSQL is a statement for operators, from its own file.
func operatorSQL(t testing.TB, name string) string {
	t.Helper()
	return strings.ReplaceAll(fileSQL(t, "operator/sql/"+name), "{content}", "NULL, NULL, NULL")
}

// fileSQL is a file of the relay's packages.
func fileSQL(t testing.TB, name string) string {
	t.Helper()
	text, err := os.ReadFile("../../../relay/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// What take_requests looks at: here it shows that the index carries it.
const requestsSQL = `
SELECT id, event_id FROM {schema}.outbox_requests
 WHERE lane = $1::smallint AND delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL
 ORDER BY event_seq LIMIT 100`
