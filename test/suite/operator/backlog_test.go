package operator

import (
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// daysOld writes so many events of lane 1 that are ready for days, and those before them as published so long ago, and
// has a relay hold the lanes since a week with a lease of half an hour, which is how long a lane may be silent: the
// command is asked only when it is built, and what was published a second ago must still be recent then. It returns the
// last event.
func (e *env) daysOld(t *testing.T, published int, ago string, ready int) (last outbox.ID) {
	t.Helper()
	e.hold(t, e.join(t, "first", "orders"))
	e.Exec(t, "UPDATE {schema}.outbox_lanes SET acquired_at = acquired_at - interval '7 days'")
	e.Exec(t, "UPDATE {schema}.outbox_beats SET at = until - interval '30 minutes'")
	e.Exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json,
			created_at, state, published_at)
		SELECT 1, {schema}.outbox_uuid7(), 'order_shipped', 'order', '1', '{}', now() - interval '5 days',
			CASE WHEN i <= $1::int THEN 6 ELSE 0 END, CASE WHEN i <= $1::int THEN now() - $2::text::interval END
		FROM generate_series(1, $1::int + $3::int) i ORDER BY i`, published, ago, ready)
	var id string
	if err := e.Pool.QueryRow(t.Context(), e.SQL("SELECT id::text FROM {schema}.outbox_events ORDER BY seq DESC LIMIT 1")).
		Scan(&id); err != nil {
		t.Fatal(err)
	}
	last, err := outbox.ParseID(id)
	if err != nil {
		t.Fatal(err)
	}
	return last
}

// TestExplainABacklog: a relay that works through many events is not stuck, and one that does not is.
func TestExplainABacklog(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		published int
		ago       string
		ready     int
		codes     string
		says      []string
	}{
		"more than a window": {50, "1 second", 1501, "backlog", []string{
			"1500 events of its lane are ready before it", "The relay works on them: the last publish",
		}},
		"none was published": {0, "0", 1501, "backlog", []string{
			"1500 events of its lane are ready before it", "it is not known when the last one was", "the log of first",
		}},
		"published long ago": {50, "84 hours", 1501, "relay_stuck", []string{
			"Nothing of the lane was published for 3 days",
		}},
		"behind an old floor": {10_500, "1 second", 151, "backlog", []string{
			"150 events of its lane are ready before it", "The relay works on them",
		}},
		"more than is looked at": {12_000, "84 hours", 12_000, "backlog", []string{
			"10000 events and more of its lane are ready before it", "it is not known when the last one was",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, e *env) {
				e.wantExplained(t, e.daysOld(t, c.published, c.ago, c.ready), c.codes, c.says...)
			})
		})
	}
}
