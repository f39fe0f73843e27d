// Package candidate is the layout that the outbox will have, measured before the relay is moved onto it: a plain lane
// column in the key, no CHECK, no expression and no predicate on the events table, so that a settle touches no index.
// It goes when the migrations have it.
package candidate

import (
	"embed"
	"strings"
)

// Schema is where benchmarks have it, beside the outbox as it is.
const Schema = "candidate"

// EventsTable is where its events are.
const EventsTable = Schema + ".outbox_events"

//go:embed sql/*.sql
var statements embed.FS

// Statement reads one: layout turns an outbox that the migrations have made into this one, emit_* write, read and
// settle drain.
func Statement(name string) string {
	text, _ := statements.ReadFile("sql/" + name + ".sql") // embedded
	return strings.ReplaceAll(strings.TrimSpace(string(text)), "{schema}", Schema)
}
