package survey_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/serverstest"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/relay/survey"
)

// TestATopicIsSeenBehindAnother: more events of a paused topic than a survey counts, which came at once, stand before
// those of a topic that was published until it went down half an hour ago. That is how old its oldest is, though its
// newest are new.
func TestATopicIsSeenBehindAnother(t *testing.T) {
	t.Parallel()
	serverstest.OnEach(t, func(t *testing.T, address string) {
		pool, schema := relaytest.Database(t, address)
		const ready, published = 0, 6
		fill := fmt.Sprintf(`INSERT INTO %s.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json,
				state, created_at)
			SELECT 1 + i %% 64, gen_random_uuid(), type, type, i::text, '{}', state, clock_timestamp() - age
			FROM (SELECT i, 'invoice_sent' AS type, $1::smallint AS state, interval '1 hour' AS age
				FROM generate_series(0, 64 * 3 - 1) i
				UNION ALL SELECT i, 'order_placed', CASE WHEN i < 64 * 10 THEN $2::smallint ELSE $1 END,
					interval '3 minutes' * (20 - i / 64) FROM generate_series(0, 64 * 20 - 1) i) e
			ORDER BY e.type, e.i`, pgx.Identifier{schema}.Sanitize())
		if _, err := pool.Exec(t.Context(), fill, ready, published); err != nil {
			t.Fatal(err)
		}
		topics := map[string]string{"invoice_sent": "invoices", "order_placed": "orders"}
		config := survey.Config{Schema: schema, Topics: topics}
		found, err := survey.ReadyUpTo(t.Context(), pool, config, 64)
		if err != nil {
			t.Fatal(err)
		}
		if oldest := found.ReadyTopics["orders"].Oldest; oldest < 30*time.Minute || oldest > time.Hour {
			t.Errorf("the oldest order is %s old, want half an hour: %+v", oldest, found.ReadyTopics)
		}
	})
}
