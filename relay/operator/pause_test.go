package operator_test

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestPause: each scope by itself, once, with who and why, by the grants of an operator.
func TestPause(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		scopes := []operator.Scope{
			operator.AllScope, operator.TopicScope("orders"), operator.TypeScope("orders"), operator.TopicScope("bills"),
		}
		for i, scope := range scopes {
			a := action()
			e.wantOrder(operator.NotApplicable, e.operator.Resume, action(), scope)
			e.wantOrder(operator.Done, e.operator.Pause, a, scope)
			e.wantOrder(operator.DoneBefore, e.operator.Pause, a, scope)
			e.wantOrder(operator.NotApplicable, e.operator.Pause, action(), scope)
			standing, err := e.operator.Pauses(t.Context())
			if err != nil || len(standing) != i+1 {
				t.Fatalf("%v, %v", standing, err)
			}
			last := standing[i]
			if want := scope.String() + " is paused by ann since " + last.Since.UTC().Format("2006-01-02T15:04:05Z") +
				": the topic is back"; last.Scope != scope || last.String() != want {
				t.Errorf("it says %q, want %q", last, want)
			}
			if _, err := e.operator.Resume(t.Context(), a, scope); err == nil ||
				!strings.Contains(err.Error(), "used before, for a pause") {
				t.Errorf("the id of another decision: %v", err)
			}
		}
		for _, scope := range scopes {
			a := action()
			e.wantOrder(operator.Done, e.operator.Resume, a, scope)
			e.wantOrder(operator.DoneBefore, e.operator.Resume, a, scope)
			e.wantOrder(operator.NotApplicable, e.operator.Resume, action(), scope)
		}
		if standing, err := e.operator.Pauses(t.Context()); err != nil || len(standing) > 0 {
			t.Errorf("%v still stand, %v", standing, err)
		}
		const each = "all, topic orders, type orders, topic bills"
		if got := e.one(`SELECT string_agg(target, ', ' ORDER BY a.id) FROM {schema}.outbox_actions a, {schema}.outbox_meta
			WHERE event_id = installation AND actor = 'ann' AND reason = 'the topic is back'`); got != each+", "+each {
			t.Errorf("the log has %q", got)
		}
	})
}

func (e *env) wantOrder(want operator.Outcome, do order, a operator.Action, scope operator.Scope) {
	e.t.Helper()
	if got, err := do(e.t.Context(), a, scope); err != nil || got != want {
		e.t.Errorf("%s: %q, %v, want %q", scope, got, err, want)
	}
}

// TestInvalidPauses never reach the database.
func TestInvalidPauses(t *testing.T) {
	t.Parallel()
	op := operator.New(nil, "")
	for want, c := range map[string]struct {
		do     order
		action operator.Action
		scope  operator.Scope
	}{
		"only relays pause":         {op.Pause, action(), operator.RestoredScope},
		"a reason is required":      {op.Pause, operator.Action{ID: outbox.NewID(), Actor: "ann"}, operator.AllScope},
		"has no actor":              {op.Pause, operator.Action{ID: outbox.NewID(), Reason: "x"}, operator.AllScope},
		"has no id":                 {op.Resume, operator.Action{Actor: "ann"}, operator.AllScope},
		"the scope is none of":      {op.Resume, action(), operator.Scope{}},
		"the name of the topic mus": {op.Pause, action(), operator.TopicScope("")},
		"the name of the type must": {op.Pause, action(), operator.TypeScope(strings.Repeat("x", 513))},
		"the name of the type hold": {op.Resume, action(), operator.TypeScope("a\nb")},
	} {
		if _, err := c.do(t.Context(), c.action, c.scope); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", want, err)
		}
	}
}
