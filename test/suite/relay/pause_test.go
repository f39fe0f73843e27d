package relay

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

func (p *env) pause(t *testing.T, scope operator.Scope, relays ...*run) {
	t.Helper()
	p.order(t, scope, true)
	p.awaitHeard(t, scope, true, relays...)
}

func (p *env) resumed(t *testing.T, scope operator.Scope, relays ...*run) {
	t.Helper()
	p.order(t, scope, false)
	p.awaitHeard(t, scope, false, relays...)
}

// order pauses a scope, or resumes it.
func (p *env) order(t *testing.T, scope operator.Scope, pause bool) {
	t.Helper()
	verb, action := operator.New(p.Pool, p.Schema).Resume, operator.Action{Actor: "bob", Reason: "they are fixed"}
	if pause {
		verb, action = operator.New(p.Pool, p.Schema).Pause, operator.Action{Actor: "ada", Reason: "the consumers are broken"}
	}
	action.ID = outbox.NewID()
	if outcome, err := verb(t.Context(), action, scope); err != nil || outcome != operator.Done {
		t.Fatalf("%s, paused %t: %q, %v", scope, pause, outcome, err)
	}
}

// knowsPaused tells whether the relay knows that the scope is paused.
func (r *run) knowsPaused(scope operator.Scope) bool {
	return slices.ContainsFunc(r.OperatorPauses(), func(standing operator.Pause) bool { return standing.Scope == scope })
}

// awaitHeard waits until the relays know whether the scope is paused.
func (p *env) awaitHeard(t *testing.T, scope operator.Scope, paused bool, relays ...*run) {
	t.Helper()
	for _, r := range relays {
		eventually.True(t, fmt.Sprintf("%s knows of %s", r.name, scope), func() bool {
			return r.knowsPaused(scope) == paused
		})
	}
}

// TestAFleetIsPausedAndResumed: what is paused stands still with every relay, also with one that starts later, and
// the rest goes on; resumed, it goes on in order, without a duplicate, and nobody was charged.
func TestAFleetIsPausedAndResumed(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		first, second := p.start(t, "first"), p.start(t, "second")
		n := 0
		emit := func() {
			for i := range 20 {
				n++
				p.emit(t, placed.New(fmt.Sprint(i), note{N: n}), shipped.New(fmt.Sprint(i), note{N: n}),
					billed.New(fmt.Sprint(i), note{N: n}))
			}
		}
		eventually.True(t, "both have lanes", func() bool { return first.Stats().Lanes > 0 && second.Stats().Lanes > 0 })
		emit()
		p.awaitPublished(t, 60)
		total := 60
		for _, c := range []struct {
			scope operator.Scope
			goes  int // of the 60
		}{
			{operator.AllScope, 0},
			{operator.TopicScope("orders"), 20},
			{operator.TypeScope("order_placed"), 20}, // what is shipped waits behind what is placed
			{operator.TypeScope("order_shipped"), 40},
		} {
			p.pause(t, c.scope, first, second)
			emit()
			eventually.True(t, fmt.Sprintf("%s: the rest", c.scope), func() bool {
				return p.inState(t, published) == total+c.goes
			})
			later := p.start(t, "later "+c.scope.String())
			p.awaitHeard(t, c.scope, true, later)
			eventually.True(t, "it has lanes", func() bool { return later.Stats().Lanes > 0 })
			if err := first.stop(t); err != nil { // its lanes go to those that are left
				t.Fatal(err)
			}
			first = later
			eventually.True(t, "its lanes are others'", func() bool { return first.Stats().Lanes+second.Stats().Lanes == 64 })
			p.awaitLooks(t, 4, first, second)
			if got := p.inState(t, published); got != total+c.goes {
				t.Errorf("%s: %d were published, want %d", c.scope, got-total, c.goes)
			}
			p.resumed(t, c.scope, first, second)
			total += 60
			p.awaitPublished(t, total)
		}
		p.wantDelivered(t)
		if p.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq") > 0 {
			t.Error("something died")
		}
		lines := slices.DeleteFunc(p.logs.lines(t, "msg", "paused by an operator"), func(line map[string]any) bool {
			return line["name"] == untouched.Name
		})
		if len(lines) != 12 || lines[0]["actor"] != "ada" || lines[0]["reason"] != "the consumers are broken" ||
			lines[0]["scope"] != "all" {
			t.Errorf("%d lines, the first %v", len(lines), lines[0])
		}
		if !strings.Contains(lines[0]["go_on"].(string), "outboxctl resume") {
			t.Errorf("it does not say how to go on: %v", lines[0])
		}
	})
}

// TestARelayWithoutTheGrantWaitsForIt and says what to do: else it would go on as if nothing could be paused.
func TestARelayWithoutTheGrantWaitsForIt(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		role, asRole := p.role(t, "relay")
		p.Exec(t, "REVOKE SELECT ON {schema}.outbox_pauses FROM "+role)
		p.emit(t, placed.New("1", note{N: 1}))
		p.start(t, "deaf", asRole)
		eventually.True(t, "a line", func() bool { return strings.Contains(p.logs.text(), "outboxctl grant relay") })
		if n := p.inState(t, published); n > 0 {
			t.Errorf("%d events were published", n)
		}
		p.Exec(t, "SELECT {schema}.outbox_grant('relay', $1::text::name)", role)
		p.awaitPublished(t, 1)
	})
}
