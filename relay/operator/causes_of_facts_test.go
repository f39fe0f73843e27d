package operator

import (
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/idtime"
)

// TestCausesOfFacts: what is concluded of an event that is ready for an hour in a lane whose holder lives, and of what
// is different. Real servers have all of it in test/suite/operator.
func TestCausesOfFacts(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	ago := func(d time.Duration) *time.Time {
		at := now.Add(-d)
		return &at
	}
	for name, c := range map[string]struct {
		change func(f *facts)
		want   string
	}{
		"nothing keeps it, and it waits": {func(*facts) {}, "relay_stuck"},
		"nothing keeps it":               {func(f *facts) { f.event.CreatedAt = *ago(time.Second) }, "due"},
		"its holder has died":            {func(f *facts) { f.holder.Alive = false }, "lane_unheld"},
		"everything stands still": {func(f *facts) {
			f.holder.Alive, f.alive = false, nil
		}, "no_relay"},
		"two at once": {func(f *facts) {
			f.pauses = []Pause{{Scope: TopicScope("orders"), Actor: "ada", Reason: "x", Since: now}}
			f.heads = []head{{kind: state.DeadBlocking, eventType: "order_placed", topic: "orders", since: now}}
		}, "paused_topic behind_dead"},
		"behind another topic": {func(f *facts) {
			f.heads = []head{{kind: state.DeadBlocking, eventType: "order_placed", topic: "bills", since: now}}
			f.event.CreatedAt = now
		}, "due"},
		"behind a dead one, or on another topic: nobody knows": {func(f *facts) {
			f.heads = []head{{kind: state.DeadBlocking, eventType: "order_placed", topic: "orders", since: now}}
			f.event.State, f.event.Topic, f.known = state.Parked.String(), "", nil
		}, "type_unknown behind_dead, perhaps"},
		"a writer began after its transaction, and before it was made": {func(f *facts) {
			f.event.ID, f.writers = idtime.Least(*ago(time.Minute)), []openWriter{{pid: 7, since: ago(2 * time.Minute)}}
		}, "relay_stuck open_writer"},
		"a writer began after it was made": {func(f *facts) {
			f.event.ID, f.writers = idtime.Least(*ago(time.Minute)), []openWriter{{pid: 7, since: ago(30 * time.Second)}}
		}, "relay_stuck"},
		"older than what retention has deleted": {func(f *facts) {
			f.there, f.cutOff, f.deleted = false, ago(0), 7
		}, "pruned"},
		"younger, and it was here": {func(f *facts) {
			f.there, f.cutOff, f.letters = false, ago(48*time.Hour), []DeadLetter{{FailedAt: now, Reason: "x"}}
		}, "not_found"},
		"younger": {func(f *facts) { f.there, f.cutOff = false, ago(48*time.Hour) }, "not_found"},
	} {
		f := &facts{
			id: idtime.Least(now.Add(-time.Hour)), now: now, there: true,
			event: Event{
				ID: outbox.ID{1}, Seq: 12, Lane: 7, State: state.Ready.String(), Type: "order_shipped", Topic: "orders",
				AggregateType: "order", AggregateID: "1", CreatedAt: *ago(time.Hour),
			},
			holder: LaneHolder{
				Lane: 7, Relay: "main", Alive: true, LastBeat: ago(time.Second), Since: ago(2 * time.Hour), id: "1", owned: true,
				lease: 30 * time.Second,
			},
			alive: []aliveRelay{{id: "1", name: "main", lanes: 64}},
			known: []knownType{{relay: "1", eventType: "order_shipped", topic: "orders"}},
		}
		c.change(f)
		var got []string
		causes := f.causes()
		slices.SortStableFunc(causes, byImportance)
		for _, cause := range causes {
			code := string(cause.Code)
			if strings.HasPrefix(code, "behind_") && !cause.Keeps {
				code += ", perhaps"
			}
			got = append(got, code)
		}
		if strings.Join(got, " ") != c.want {
			t.Errorf("%s: the causes are %q, want %s", name, got, c.want)
		}
	}
}

// TestWhatIsPrunedIsNotCountedForATenant: how much retention has deleted, it has deleted of all of them.
func TestWhatIsPrunedIsNotCountedForATenant(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	for _, letters := range [][]DeadLetter{nil, {{FailedAt: now, Reason: "x"}}} {
		f := &facts{id: idtime.Least(now.Add(-time.Hour)), now: now, cutOff: &now, deleted: 123456, letters: letters}
		all := Explanation{Causes: f.causes()}
		if says := all.Causes[0].Says; !strings.Contains(says, "it has deleted 123456 events, up to those of 2026-01-31") {
			t.Errorf("all is %q", says)
		}
		own := all.WithoutOthers().Causes
		if len(own) != 1 || own[0].Code != CausePruned || strings.Contains(own[0].Says, "123456") ||
			!strings.Contains(own[0].Says, "it has deleted events up to those of 2026-01-31") {
			t.Errorf("a tenant is told %+v", own)
		}
	}
}

// TestDecisionsHaveAReason: a command about an event, as it is printed, is one that is understood.
func TestDecisionsHaveAReason(t *testing.T) {
	t.Parallel()
	verbs := regexp.MustCompile(`outboxctl (dead redrive|skip|dead discard|release)`)
	reasons := regexp.MustCompile(`outboxctl (dead redrive|skip|dead discard|release) [0-9a-f-]{36} --reason "`)
	id := outbox.NewID()
	for _, is := range []state.State{state.Dead, state.DeadBlocking, state.Parked, state.Waiting} {
		f := &facts{
			id: id, there: true, event: Event{ID: id, State: is.String(), Type: "order_shipped", Topic: "orders"},
			holder: LaneHolder{id: "1", Alive: true}, alive: []aliveRelay{{id: "1"}},
			known: []knownType{{relay: "1", eventType: "order_shipped", topic: "orders"}},
			heads: []head{{kind: state.DeadBlocking, eventType: "order_shipped", id: id.String()}},
		}
		causes := f.causes()
		f.event.Erased = true
		for _, cause := range append(causes, f.causes()...) {
			if all := verbs.FindAllString(cause.Do, -1); len(all) == 0 || len(all) != len(reasons.FindAllString(cause.Do, -1)) {
				t.Errorf("%s: no reason in %q", is, cause.Do)
			}
		}
	}
}
