package pgstore_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// TestDueFarAway: a row that is due at a time no clock shows is read like any other. It must not fail the statement,
// which serves all rows of all lanes, nor turn a distant past into a future.
func TestDueFarAway(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		id, lane := w.addType(t, "1", "a", core.Retrying), w.lane(t, "1")
		for at, past := range map[string]bool{
			"-infinity": true, "4713-11-25 BC": true, "0001-01-01": true, "1500-01-01": true,
			"infinity": false, "294276-12-31": false, "9999-12-31": false, "2400-01-01": false,
		} {
			w.heldAt(t, id, "timestamptz '"+at+"'")
			held := must(w.store.HeldKeys(t.Context(), core.HeldKeys{Lanes: core.AllLines(lane)}))(t).Keys
			if len(held) != 1 || (held[0].DueIn < 0) != past {
				t.Errorf("%s: held are %+v", at, held)
			}
			rows := must(w.store.HeldRows(t.Context(), core.HeldRows{
				Asks: []core.HeldAsk{{Lane: lane, Aggregate: aggregate("1"), Types: []string{"a"}}}, Limit: 10,
			}))(t).Events
			if len(rows) != 1 || (rows[0].DueIn < 0) != past {
				t.Errorf("%s: the rows are %+v", at, rows)
			}
			due := must(w.store.DueKeys(t.Context(), core.DueKeys{Lanes: []core.LaneFrom{{Lane: lane}}, Limit: 10}))(t).Keys
			if (len(due) == 1) != past || past && due[0].DueIn >= 0 {
				t.Errorf("%s: due are %+v", at, due)
			}
		}
	})
}

// TestCreatedFarAway: the time of an event is read as it is, however far away; infinity becomes a year that no
// message can have.
func TestCreatedFarAway(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		lane := w.lane(t, "1")
		for at, want := range map[string]string{
			"0001-01-01T00:00:00.000001Z": "0001-01-01T00:00:00.000001Z", "1500-06-01T00:00:00Z": "1500-06-01T00:00:00Z",
			"1969-12-31T23:59:59.999999Z": "1969-12-31T23:59:59.999999Z",
			"1999-12-31T23:59:59.999999Z": "1999-12-31T23:59:59.999999Z",
			"2300-01-01T00:00:00Z":        "2300-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z": "9999-12-31T23:59:59.999999Z",
			"infinity": "", "-infinity": "", "4713-11-25T00:00:00Z BC": "", "294276-12-31T00:00:00Z": "",
		} {
			id := outbox.NewID()
			w.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, 
				created_at)
				VALUES ($1, 'a', 'order', '1', $2, $3::text::timestamptz)`, id.String(), payload(id), at)
			answer := must(w.store.Read(t.Context(), core.Read{
				Lanes: []core.LaneRead{{Lane: lane, Limit: 10}}, MaxBytes: 1 << 20,
			}))(t)
			if len(answer.Events) != 1 {
				t.Fatalf("%s: %d events were read", at, len(answer.Events))
			}
			got := answer.Events[0].CreatedAt.UTC()
			if want != "" && got.Format(time.RFC3339Nano) != want || want == "" && got.Year() >= 1 && got.Year() <= 9999 {
				t.Errorf("%s was read as %s", at, got)
			}
			w.exec(t, "UPDATE {schema}.outbox_events SET state = 5 WHERE id = $1", id.String())
		}
	})
}
