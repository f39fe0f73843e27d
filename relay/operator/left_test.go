package operator_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestLeft: of an event that is deleted what its dead letters say, and what was done about it; of any other nothing.
func TestLeft(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.event("1", "order_created", state.Dead)
		none := func(why string, id outbox.ID) {
			if got, err := e.operator.Left(t.Context(), id); !errors.Is(err, operator.ErrNoEvent) {
				t.Errorf("%s: %+v, %v", why, got, err)
			}
		}
		none("it is in the table", id)
		none("it never was", outbox.NewID())
		e.do(e.operator.Discard, action(), id)
		there, err := e.operator.Event(t.Context(), id, false)
		if err != nil {
			t.Fatal(err)
		}
		e.exec("DELETE FROM {schema}.outbox_events WHERE id = $1", id.String())
		got, err := e.operator.Left(t.Context(), id)
		if err != nil || got.State != operator.StateDeleted || got.ID != id || got.Seq != there.Seq ||
			got.Type != there.Type || got.AggregateType+"/"+got.AggregateID != "order/1" || got.Namespace != there.Namespace ||
			!got.CreatedAt.Equal(there.CreatedAt) || got.Lane != 0 || got.Erased || got.Payload != nil {
			t.Errorf("%+v, %v", got.Event, err)
		}
		if len(got.DeadLetters) != 1 || got.LastError != got.DeadLetters[0].Detail || len(got.Actions) != 1 ||
			got.Actions[0].Verb != "discard" {
			t.Errorf("%+v", got)
		}
		explained, err := e.operator.Explain(t.Context(), id)
		if err != nil || len(explained.Causes) != 1 || explained.Waits {
			t.Fatalf("%+v, %v", explained, err)
		}
		for _, want := range []string{"retention has deleted nothing yet", "It was here: it died", "ann did a discard"} {
			if !strings.Contains(explained.Causes[0].Says, want) {
				t.Errorf("no %q in %s", want, explained.Causes[0].Says)
			}
		}
		e.exec("UPDATE {schema}.outbox_retention SET cut_off = clock_timestamp(), deleted = 1 WHERE kind = 'published'")
		if explained, err = e.operator.Explain(t.Context(), id); err != nil || len(explained.Causes) != 1 ||
			explained.Causes[0].Code != operator.CausePruned || strings.Contains(explained.Causes[0].Says, "never here") {
			t.Errorf("%+v, %v", explained, err)
		}
		e.exec("DELETE FROM {schema}.outbox_dlq WHERE event_id = $1", id.String())
		none("its dead letter is deleted as well", id)
	})
}
