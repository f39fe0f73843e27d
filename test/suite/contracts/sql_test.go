package contracts

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestSQLEmitsWhatTheRegistryTakes: the calls run as they are printed, and what they store keeps its contract.
func TestSQLEmitsWhatTheRegistryTakes(t *testing.T) {
	t.Parallel()
	file, document := load(t, filepath.Join(root, "examples/registry.yaml"))
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		if _, err := db.Pool.Exec(t.Context(), document.SQL(db.Schema, nil)); err != nil {
			t.Fatal(err)
		}
		stored := map[string]bool{}
		rows, err := db.Pool.Query(t.Context(), db.SQL(`SELECT id::text, event_type, aggregate_type, aggregate_id,
			payload_json::text FROM {schema}.outbox_events`))
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		for rows.Next() {
			var id, payload string
			var row outbox.Stored
			if err := rows.Scan(&id, &row.EventType, &row.AggregateType, &row.AggregateID, &payload); err != nil {
				t.Fatal(err)
			}
			if row.ID, err = outbox.ParseID(id); err != nil {
				t.Fatal(err)
			}
			row.Payload = json.RawMessage(payload)
			if _, err := file.Registry.Check(row); err != nil {
				t.Errorf("%s: %v\n%s", row.EventType, err, payload)
			}
			stored[row.EventType] = true
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		for _, eventType := range file.Registry.Types() {
			if !stored[eventType] {
				t.Errorf("%s was not emitted", eventType)
			}
		}
	})
}
