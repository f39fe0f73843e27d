package operator_test

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestLooksUseTheirIndexes: also where the ids lie in the table as they please, as they do when retention has made
// room, and where the statistics are of an empty table.
func TestLooksUseTheirIndexes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec("ANALYZE {schema}.outbox_events") // of nothing
		e.exec(`INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, state, published_at,
				payload_json)
			SELECT 1 + i % 64, (substr(md5(i::text), 1, 12) || '7' || substr(md5(i::text), 13, 3) || '8' ||
				substr(md5(i::text), 16, 15))::uuid, 'type_' || i % 10, 'order', (i % 5000)::text, 6, now(), '{}'
			FROM generate_series(1, 20000) i`)
		for _, round := range []string{"stale", "fresh"} {
			if round == "fresh" {
				e.exec("CREATE INDEX outbox_events_event_type ON {schema}.outbox_events (event_type, seq)")
				e.exec("ANALYZE {schema}.outbox_events")
			}
			for text, index := range map[string]string{
				"":                                     "Index Scan Backward using outbox_events_id",
				"tenant:nobody":                        "Index Scan Backward using outbox_events_id",
				"created:2001-01-01..2999-01-01":       "Index Scan Backward using outbox_events_id",
				"aggregate:order/7":                    "outbox_events_aggregate",
				"01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e": "outbox_events_id",
				"state:retrying,dead":                  "outbox_held",
				"type:type_7": map[string]string{
					"stale": "Index Scan Backward using outbox_events_id",
					"fresh": "Index Scan Backward using outbox_events_event_type",
				}[round],
			} {
				filter, err := operator.ParseFilter(text)
				if err != nil {
					t.Fatal(err)
				}
				plan, err := e.operator.PlanOf(t.Context(), filter)
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(plan, "Seq Scan on outbox_events") || !strings.Contains(plan, index) {
					t.Errorf("%s, %s statistics:\n%s", text, round, plan)
				}
			}
		}
	})
}

// TestTrafficReadsItsMinutes, and not all 72 hours.
func TestTrafficReadsItsMinutes(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for what, plan := range map[string]func() (string, error){
			"traffic":           func() (string, error) { return e.operator.PlanOfTraffic(t.Context(), 5) },
			"series":            func() (string, error) { return e.operator.PlanOfSeries(t.Context(), 5, "") },
			"series of a topic": func() (string, error) { return e.operator.PlanOfSeries(t.Context(), 5, "orders") },
		} {
			plan, err := plan()
			if err != nil || !strings.Contains(plan, "Index Cond: ((minute >= ") ||
				strings.Contains(plan, "Filter: ((minute") || strings.Contains(plan, "Seq Scan on outbox_minutes") {
				t.Errorf("%s: %v:\n%s", what, err, plan)
			}
		}
	})
}
