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
	text, err := os.ReadFile("../../relay/internal/pgstore/sql/" + name + ".sql")
	if err != nil {
		t.Fatal(err)
	}
	return strings.ReplaceAll(string(text), "{types}", "true")
}

// Statements of the parts that come later: here they show that the tables, indexes and grants carry them.
const (
	requestsSQL = `
SELECT id, event_id FROM {schema}.outbox_requests
 WHERE layout = 1 AND lane = $1::smallint AND delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL
 ORDER BY event_seq LIMIT 100`

	// The janitor's. An array of ids and not a join: joined, the planner hashes the whole table.
	retentionSQL = `
DELETE FROM {schema}.outbox_events WHERE id = ANY (ARRAY(
    SELECT id FROM {schema}.outbox_events e WHERE published_at < $1
       AND NOT EXISTS (SELECT FROM {schema}.outbox_requests r WHERE r.event_id = e.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL)
     ORDER BY published_at LIMIT 500))`

	dedupeRetentionSQL = `
DELETE FROM {schema}.outbox_dedupe
 WHERE ctid = ANY (ARRAY(SELECT ctid FROM {schema}.outbox_dedupe WHERE created_at < $1 ORDER BY created_at LIMIT 500))`

	deadLetterRetentionSQL = `
DELETE FROM {schema}.outbox_dlq d
 WHERE EXISTS (SELECT FROM {schema}.outbox_actions a WHERE a.dlq_id = d.id AND a.verb IN ('redrive', 'discard', 'reissue') AND a.acted_at < $1)`
)
