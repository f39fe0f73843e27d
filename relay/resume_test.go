package relay_test

import (
	"strings"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
)

// TestResume: only where the outbox is not at home, once, with who and why, and by the grants of an operator.
func TestResume(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		action := func() relay.Action {
			return relay.Action{ID: outbox.NewID(), Actor: "ada", Reason: "restored on purpose"}
		}
		want := func(want relay.ActionOutcome, a relay.Action) {
			t.Helper()
			if got, err := d.operator.Resume(t.Context(), a, relay.Restored); err != nil || got != want {
				t.Errorf("resume: %q, %v, want %q", got, err, want)
			}
		}
		want(relay.ActionRefused, action()) // no relay has been here
		d.exec("INSERT INTO {schema}.outbox_home (system_identifier, timeline, since, seen_at) VALUES (1, 1, 'epoch', 'epoch')")
		a := action()
		want(relay.ActionDone, a)
		want(relay.ActionDoneBefore, a)
		want(relay.ActionRefused, action())
		if got := d.one(`SELECT string_agg(verb || ' ' || actor || ': ' || reason || ' ' || (event_id = installation), ', ') FROM {schema}.outbox_actions, {schema}.outbox_meta`); got != "resume ada: restored on purpose true" {
			t.Errorf("the log has %q", got)
		}
		if got := d.one("SELECT (h.system_identifier = s.system_identifier AND h.timeline < 100 AND since > now() - interval '1 hour' AND seen_at = since)::text FROM {schema}.outbox_home h, pg_control_system() s"); got != "true" {
			t.Errorf("the home is %s", d.one("SELECT h::text FROM {schema}.outbox_home h"))
		}

		dead := d.event("1", "order_created", 5)
		if _, err := d.operator.Discard(t.Context(), relay.Action{ID: outbox.NewID(), Actor: "ada", Reason: "x"}, dead); err != nil {
			t.Fatal(err)
		}
		d.exec("UPDATE {schema}.outbox_home SET timeline = 99")
		used := action()
		if err := used.ID.UnmarshalText([]byte(d.one("SELECT action_id::text FROM {schema}.outbox_actions WHERE verb = 'discard'"))); err != nil {
			t.Fatal(err)
		}
		if _, err := d.operator.Resume(t.Context(), used, relay.Restored); err == nil || !strings.Contains(err.Error(), "used before, for a discard") {
			t.Errorf("the id of another decision: %v", err)
		}
		if _, err := d.operator.Resume(t.Context(), relay.Action{}, relay.Restored); err == nil || !strings.Contains(err.Error(), "no actor") {
			t.Errorf("an action without anything: %v", err)
		}
		if got := d.one("SELECT timeline::text FROM {schema}.outbox_home"); got != "99" {
			t.Errorf("a refused resume moved the home to timeline %s", got)
		}

		// Sent by many at once, it is done once.
		a = action()
		outcomes := make(chan relay.ActionOutcome, 8)
		var all sync.WaitGroup
		for range cap(outcomes) {
			all.Go(func() {
				outcome, err := d.operator.Resume(t.Context(), a, relay.Restored)
				if err != nil {
					t.Error(err)
				}
				outcomes <- outcome
			})
		}
		all.Wait()
		close(outcomes)
		count := map[relay.ActionOutcome]int{}
		for outcome := range outcomes {
			count[outcome]++
		}
		if count[relay.ActionDone] != 1 || count[relay.ActionDoneBefore] != 7 {
			t.Errorf("at once: %v", count)
		}
	})
}
