package relay_test

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
)

// TestPause: each scope by itself, once, with who and why, by the grants of an operator.
func TestPause(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		scopes := []relay.Scope{relay.Everything, relay.Topic("orders"), relay.EventType("orders"), relay.Topic("bills")}
		for i, scope := range scopes {
			a := action()
			d.wantOrder(relay.ActionRefused, d.operator.Resume, action(), scope)
			d.wantOrder(relay.ActionDone, d.operator.Pause, a, scope)
			d.wantOrder(relay.ActionDoneBefore, d.operator.Pause, a, scope)
			d.wantOrder(relay.ActionRefused, d.operator.Pause, action(), scope)
			standing, err := d.operator.Pauses(t.Context())
			if err != nil || len(standing) != i+1 {
				t.Fatalf("%v, %v", standing, err)
			}
			last := standing[i]
			if want := scope.String() + " is paused by ann since " + last.Since.UTC().Format("2006-01-02T15:04:05Z") + ": the topic is back"; last.Scope != scope || last.String() != want {
				t.Errorf("it says %q, want %q", last, want)
			}
			if _, err := d.operator.Resume(t.Context(), a, scope); err == nil || !strings.Contains(err.Error(), "used before, for a pause") {
				t.Errorf("the id of another decision: %v", err)
			}
		}
		for _, scope := range scopes {
			a := action()
			d.wantOrder(relay.ActionDone, d.operator.Resume, a, scope)
			d.wantOrder(relay.ActionDoneBefore, d.operator.Resume, a, scope)
			d.wantOrder(relay.ActionRefused, d.operator.Resume, action(), scope)
		}
		if standing, err := d.operator.Pauses(t.Context()); err != nil || len(standing) > 0 {
			t.Errorf("%v still stand, %v", standing, err)
		}
		const each = "all, topic orders, type orders, topic bills"
		if got := d.one(`SELECT string_agg(target, ', ' ORDER BY a.id) FROM {schema}.outbox_actions a, {schema}.outbox_meta
			WHERE event_id = installation AND actor = 'ann' AND reason = 'the topic is back'`); got != each+", "+each {
			t.Errorf("the log has %q", got)
		}
	})
}

func (d *desk) wantOrder(want relay.ActionOutcome, do order, a relay.Action, scope relay.Scope) {
	d.t.Helper()
	if got, err := do(d.t.Context(), a, scope); err != nil || got != want {
		d.t.Errorf("%s: %q, %v, want %q", scope, got, err, want)
	}
}

// TestPausesThatAreRefused never reach the database.
func TestPausesThatAreRefused(t *testing.T) {
	t.Parallel()
	operator := relay.NewOperator(nil, "")
	for want, c := range map[string]struct {
		do     order
		action relay.Action
		scope  relay.Scope
	}{
		"only relays pause":         {operator.Pause, action(), relay.Restored},
		"a reason is required":      {operator.Pause, relay.Action{ID: outbox.NewID(), Actor: "ann"}, relay.Everything},
		"has no actor":              {operator.Pause, relay.Action{ID: outbox.NewID(), Reason: "x"}, relay.Everything},
		"has no id":                 {operator.Resume, relay.Action{Actor: "ann"}, relay.Everything},
		"the scope is none of":      {operator.Resume, action(), relay.Scope{}},
		"the name of the topic mus": {operator.Pause, action(), relay.Topic("")},
		"the name of the type must": {operator.Pause, action(), relay.EventType(strings.Repeat("x", 513))},
		"the name of the type hold": {operator.Resume, action(), relay.EventType("a\nb")},
	} {
		if _, err := c.do(t.Context(), c.action, c.scope); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
