package operator_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestTheLogSaysWhoDidWhat, page by page and by what is asked for.
func TestTheLogSaysWhoDidWhat(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		began := time.Now().Add(-time.Hour)
		one, two := e.event("1", "order_created", state.Dead), e.event("2", "order_created", state.Dead)
		by := func(actor string) operator.Action {
			return operator.Action{ID: outbox.NewID(), Actor: actor, Reason: "why " + actor}
		}
		e.do(e.operator.Redrive, by("ann"), one)
		e.do(e.operator.Discard, by("bob"), two)
		topic := operator.Scope{Kind: "topic", Name: "orders"}
		if _, err := e.operator.Pause(t.Context(), by("ann"), topic); err != nil {
			t.Fatal(err)
		}
		read := func(filter operator.ActionFilter) (string, string) {
			t.Helper()
			page, err := e.operator.Actions(t.Context(), filter)
			if err != nil {
				t.Fatal(err)
			}
			var lines []string
			for _, a := range page.Actions {
				about := a.Target
				if a.Event != nil {
					about = a.Event.String()
				}
				lines = append(lines, fmt.Sprintf("%s %s %s %q", a.Actor, a.Verb, about, a.Reason))
				if a.Role != "operator_"+e.schema || time.Since(a.At) > time.Hour || a.Action == (outbox.ID{}) {
					t.Errorf("%+v", a)
				}
			}
			return strings.Join(lines, "\n"), page.Next
		}
		paused := `ann pause topic orders "why ann"`
		discarded, redriven := fmt.Sprintf(`bob discard %s "why bob"`, two), fmt.Sprintf(`ann redrive %s "why ann"`, one)
		for _, c := range []struct {
			filter operator.ActionFilter
			want   []string
		}{
			{operator.ActionFilter{}, []string{paused, discarded, redriven}},
			{operator.ActionFilter{Actor: "ann"}, []string{paused, redriven}},
			{operator.ActionFilter{Verb: "discard"}, []string{discarded}},
			{operator.ActionFilter{Event: one}, []string{redriven}},
			{operator.ActionFilter{Event: one, Actor: "bob"}, nil},
			{operator.ActionFilter{Role: "nobody"}, nil},
			{operator.ActionFilter{Role: "operator_" + e.schema, Verb: "pause"}, []string{paused}},
			{operator.ActionFilter{Since: time.Now().Add(time.Hour)}, nil},
			{operator.ActionFilter{Until: began}, nil},
			{operator.ActionFilter{Since: began, Until: time.Now().Add(time.Hour)}, []string{paused, discarded, redriven}},
		} {
			if got, next := read(c.filter); got != strings.Join(c.want, "\n") || next != "" {
				t.Errorf("%+v: %s (next %q)\nwant %q", c.filter, got, next, c.want)
			}
		}
		first, next := read(operator.ActionFilter{Limit: 2})
		rest, end := read(operator.ActionFilter{Limit: 2, After: next})
		if first != paused+"\n"+discarded || next == "" || rest != redriven || end != "" {
			t.Errorf("pages: %s, then at %q: %s, %q", first, next, rest, end)
		}
		// A page looks at no more than 10,000.
		e.exec(`INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor)
			SELECT gen_random_uuid(), 'pause', gen_random_uuid(), 'job' FROM generate_series(1, 10500)`)
		first, next = read(operator.ActionFilter{Actor: "bob"})
		rest, end = read(operator.ActionFilter{Actor: "bob", After: next})
		if first != "" || next == "" || rest != discarded || end != "" {
			t.Errorf("what is rare: %q, then at %q: %s, %q", first, next, rest, end)
		}
		for _, wrong := range []operator.ActionFilter{
			{Limit: 1001}, {After: "x"}, {Actor: "a\x00"}, {Since: time.Now(), Until: began},
		} {
			if _, err := e.operator.Actions(t.Context(), wrong); err == nil {
				t.Errorf("%+v passes", wrong)
			}
		}
	})
}
