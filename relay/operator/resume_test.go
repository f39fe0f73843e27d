package operator_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestResume: only where the outbox is on another server, once, with who and why, and by the grants of an operator.
func TestResume(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		action := func() operator.Action {
			return operator.Action{ID: outbox.NewID(), Actor: "ada", Reason: "restored on purpose"}
		}
		want := func(want operator.Outcome, a operator.Action) {
			t.Helper()
			if got, err := e.operator.Resume(t.Context(), a, operator.RestoredScope); err != nil || got != want {
				t.Errorf("resume: %q, %v, want %q", got, err, want)
			}
		}
		want(operator.NotApplicable, action()) // no relay has been here
		e.exec("INSERT INTO {schema}.outbox_identity (system_identifier, timeline, since, seen_at) VALUES (1, 1, 'epoch', " +
			"'epoch')")
		a := action()
		want(operator.Done, a)
		want(operator.DoneBefore, a)
		want(operator.NotApplicable, action())
		if got := e.one(`SELECT string_agg(verb || ' ' || actor || ': ' || reason || ' ' || (event_id = installation), ', ` +
			`') FROM {schema}.outbox_actions, {schema}.outbox_meta`); got != "resume ada: restored on purpose true" {
			t.Errorf("the log has %q", got)
		}
		if got := e.one("SELECT (h.system_identifier = s.system_identifier AND h.timeline < 100 AND since > now() - " +
			"interval '1 hour' AND seen_at = since)::text FROM {schema}.outbox_identity h, pg_control_system() s"); got !=
			"true" {
			t.Errorf("the home is %s", e.one("SELECT h::text FROM {schema}.outbox_identity h"))
		}

		dead := e.event("1", "order_created", state.Dead)
		if _, err := e.operator.Discard(t.Context(), operator.Action{ID: outbox.NewID(), Actor: "ada", Reason: "x"},
			dead); err != nil {
			t.Fatal(err)
		}
		e.exec("UPDATE {schema}.outbox_identity SET timeline = 99")
		used := action()
		if err := used.ID.UnmarshalText(
			[]byte(e.one("SELECT action_id::text FROM {schema}.outbox_actions WHERE verb = 'discard'"))); err != nil {
			t.Fatal(err)
		}
		if _, err := e.operator.Resume(t.Context(), used, operator.RestoredScope); err == nil ||
			!strings.Contains(err.Error(), "used before, for a discard") {
			t.Errorf("the id of another decision: %v", err)
		}
		if _, err := e.operator.Resume(t.Context(), operator.Action{}, operator.RestoredScope); err == nil ||
			!strings.Contains(err.Error(), "no actor") {
			t.Errorf("an action without anything: %v", err)
		}
		if got := e.one("SELECT timeline::text FROM {schema}.outbox_identity"); got != "99" {
			t.Errorf("a refused resume moved the home to timeline %s", got)
		}

		// Sent by many at once, it is done once.
		a = action()
		outcomes := make(chan operator.Outcome, 8)
		var all sync.WaitGroup
		for range cap(outcomes) {
			all.Go(func() {
				outcome, err := e.operator.Resume(t.Context(), a, operator.RestoredScope)
				if err != nil {
					t.Error(err)
				}
				outcomes <- outcome
			})
		}
		all.Wait()
		close(outcomes)
		count := map[operator.Outcome]int{}
		for outcome := range outcomes {
			count[outcome]++
		}
		if count[operator.Done] != 1 || count[operator.DoneBefore] != 7 {
			t.Errorf("at once: %v", count)
		}
	})
}
