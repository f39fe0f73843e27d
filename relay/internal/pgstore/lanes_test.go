package pgstore_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// TestAcquire: lanes that are free, in the order of the list, no more than asked for. A lane whose relay has expired is
// free when that was ended, and only this counts as a crash.
func TestAcquire(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		one, two := w.register(t), w.register(t)
		first := w.take(t, one, 2, 9, 7, 8)
		if got := first.taken; !slices.Equal(got, []core.Acquired{{Lane: 9}, {Lane: 7}}) {
			t.Errorf("took %+v", got)
		}
		if got := w.take(t, two, 9, 7, 8, 9).taken; !slices.Equal(got, []core.Acquired{{Lane: 8}}) {
			t.Errorf("took %+v, and two of the three were held", got)
		}
		if got := w.take(t, two, 9).taken; len(got) != 0 {
			t.Errorf("took %+v, and asked for none", got)
		}
		if got := w.look(t, one).Held; !slices.Equal(got, []int16{7, 9}) {
			t.Errorf("holds %v, want 7 and 9", got)
		}
		w.expire(t)
		three := w.register(t)
		if got := w.take(t, three, 9, 7, 8, 9).taken; len(got) != 0 {
			t.Errorf("took %+v of relays that were not ended", got)
		}
		noted := outbox.NewID()
		w.exec(t, "INSERT INTO {schema}.outbox_markers (layout, lane, event_id, token, deaths) VALUES "+
			"(1, 7, $1, $2::text::uuid, 1), (1, 20, $1, NULL, 1)", noted.String(), first.tenure.String())
		w.exec(t, "UPDATE {schema}.outbox_lanes SET floor = 5 WHERE lane IN (7, 20)")
		w.endExpired(t, false)
		want := []core.Acquired{
			{Lane: 20, Floor: 5, NotedEvent: noted, NotedCount: 1},
			{Lane: 7, Floor: 5, Crashed: true, CrashCount: 1, NotedEvent: noted, NotedCount: 2},
			{Lane: 8, Crashed: true, CrashCount: 1},
		}
		if got := w.take(t, three, 3, 20, 7, 8, 9).taken; !slices.Equal(got, want) {
			t.Errorf("took %+v, want %+v", got, want)
		}
		for name, owner := range map[string]core.Owner{
			"an ended relay": one, "an unknown one": newOwner(), "another's token": {Relay: three.Relay, Token: one.Token},
		} {
			if got := w.take(t, owner, 9, 30, 31).taken; len(got) != 0 {
				t.Errorf("%s took %+v", name, got)
			}
		}
		w.exec(t, "UPDATE {schema}.outbox_meta SET lane_layout = 2")
		if got := w.take(t, three, 9, 30, 31).taken; len(got) != 0 {
			t.Errorf("took %+v of another layout", got)
		}
	})
}

// TestFaultC13TheLimitHolds: however the planner joins, no more lanes are taken than asked for.
func TestFaultC13TheLimitHolds(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		w.exec(t, "ANALYZE {schema}.outbox_lanes")
		for _, plan := range []string{
			"SET enable_hashjoin = off; SET enable_mergejoin = off", "SET enable_nestloop = off; SET enable_mergejoin = off",
			"SET enable_nestloop = off; SET enable_hashjoin = off", "SET enable_seqscan = off",
			"SET plan_cache_mode = force_generic_plan",
		} {
			conn := must(w.pool.Acquire(t.Context()))(t)
			relay, token := pgstore.Asker(w.register(t))
			w.exec(t, "UPDATE {schema}.outbox_lanes SET owner = NULL, token = NULL")
			if _, err := conn.Exec(t.Context(), "BEGIN; "+plan); err != nil {
				t.Fatal(err)
			}
			tenure := outbox.NewID().String()
			if _, err := conn.Exec(t.Context(), statement("acquire", w), allLanes(), int32(5), relay, token,
				tenure); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(), "COMMIT; RESET ALL"); err != nil {
				t.Fatal(err)
			}
			conn.Release()
			if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE token = $1", tenure); n != 5 {
				t.Errorf("%s: took %d lanes, want 5", plan, n)
			}
		}
	})
}

// TestRelease: by lane and token with what was reached, and by token alone; a stale one changes nothing.
func TestRelease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.acquire(t)
		give := func(give core.Release) {
			t.Helper()
			if err := w.store.Release(t.Context(), give); err != nil {
				t.Fatal(err)
			}
		}
		free := func() int { return w.count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NULL") }
		w.exec(t, "UPDATE {schema}.outbox_lanes SET crash_count = 1, crashed = true")
		two, stale := held.at(2, 7), held.at(3, 9)
		two.Calm, two.Needs, stale.Token = true, []string{"x"}, outbox.NewID()
		give(core.Release{
			Owner: held.Owner, Lanes: []core.Progress{two, held.at(1, 0), stale}, Tokens: []outbox.ID{outbox.NewID()},
		})
		want := []string{"(1,t,0,1,{},f)", "(2,t,7,0,{x},f)", "(3,f,0,1,{},t)", "(4,f,0,1,{},t)"}
		got := w.rows(t, "SELECT lane, owner IS NULL AND token IS NULL, floor, crash_count, needs, crashed "+
			"FROM {schema}.outbox_lanes WHERE lane < 5 ORDER BY 1")
		if !slices.Equal(got, want) {
			t.Errorf("lanes are %v, want %v", got, want)
		}
		if left := w.look(t, held.Owner).Held; len(left) != 62 || slices.Contains(left, 1) || slices.Contains(left, 2) {
			t.Errorf("the relay has %v left", left)
		}
		other := w.register(t)
		for _, owner := range []core.Owner{other, {Relay: held.Relay, Token: other.Token}, newOwner()} {
			give(core.Release{
				Owner: owner, Lanes: []core.Progress{held.at(4, 9)}, Tokens: []outbox.ID{held.tenure}, End: owner != other,
			})
		}
		if n := free(); n != 2 || w.isEnded(t, held.Owner) {
			t.Errorf("%d lanes are free after releases of others", n)
		}
		// Given back and taken again, a release that was stuck in a connection has the token of before.
		again := w.take(t, held.Owner, 2, 1, 2)
		give(core.Release{Owner: held.Owner, Lanes: []core.Progress{two, held.at(1, 0)}})
		if n := free(); n != 0 || len(again.taken) != 2 {
			t.Errorf("a late release freed %d lanes", n)
		}
		give(core.Release{Owner: held.Owner, Tokens: []outbox.ID{outbox.NewID(), held.tenure}})
		if n := free(); n != 62 {
			t.Errorf("%d lanes are free", n)
		}
		give(core.Release{})
		// Released and taken again is no crash. What nobody told of is as the last owner left it.
		next := w.acquire(t)
		if len(next.taken) != 62 || next.lanes()[0] != 3 || !next.taken[0].Crashed || next.taken[0].CrashCount != 1 {
			t.Errorf("took %d lanes, the first %+v", len(next.taken), next.taken[0])
		}
		if first := again.taken[0]; first.Crashed || first.CrashCount != 1 {
			t.Errorf("a lane that was given back is %+v", first)
		}
		give(core.Release{Owner: again.Owner, Lanes: []core.Progress{again.at(2, 8)}, End: true})
		if n := free(); n != 2 || !w.isEnded(t, again.Owner) || w.isEnded(t, next.Owner) ||
			w.count(t, "SELECT floor FROM {schema}.outbox_lanes WHERE lane = 2") != 8 {
			t.Errorf("left: %d lanes are free", n)
		}
	})
}

// TestNote: the event that is about to be sent alone, as long as the lane is held; another begins anew.
func TestNote(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held, event := w.hold(t, "1"), outbox.NewID()
		lane := held.lane()
		note := func(held holder, event outbox.ID) bool {
			t.Helper()
			return must(w.store.Note(t.Context(), core.Note{
				Owner: held.Owner, Tenure: held.at(lane, 0).Tenure, Event: event, Outlived: event == outbox.ID{},
			}))(t)
		}
		noted := func() string {
			t.Helper()
			return strings.Join(w.rows(t, "SELECT event_id, deaths, token IS NOT NULL FROM {schema}.outbox_markers "+
				"WHERE layout = 1 AND lane = $1", lane), " ")
		}
		is := func(when string, event outbox.ID, deaths string) {
			t.Helper()
			if got, want := noted(), "("+event.String()+","+deaths+")"; got != want {
				t.Errorf("%s: %s, want %s", when, got, want)
			}
		}
		other := w.hold(t, "2")
		late := held // of a tenure that is over
		late.tenure = outbox.NewID()
		if !note(held, event) || note(other, outbox.NewID()) || note(other, outbox.ID{}) || note(late, outbox.NewID()) {
			t.Error("the lane's holder was refused, or another was not")
		}
		is("noted", event, "0,t")
		next := outbox.NewID()
		note(held, next)
		is("another, and nobody has died", next, "0,t")
		if note(held, outbox.ID{}); noted() != "" {
			t.Errorf("taken back: %s", noted())
		}
		note(held, event)
		w.exec(t, "UPDATE {schema}.outbox_markers SET deaths = 2 WHERE lane = $1", lane)
		w.exec(t, "UPDATE {schema}.outbox_lanes SET crash_count = 3 WHERE lane = $1", lane)
		note(held, event)
		is("noted again", event, "2,t")
		w.exec(t, "UPDATE {schema}.outbox_markers SET deaths = 3 WHERE lane = $1", lane)
		must(w.store.Note(t.Context(), core.Note{Owner: held.Owner, Tenure: held.at(lane, 0).Tenure}))(t)
		is("not sent", event, "3,f")
		note(held, event)
		is("noted again", event, "3,t")
		note(held, outbox.ID{})
		is("outlived once", event, "2,f")
		note(held, outbox.ID{})
		is("told so twice", event, "2,f")
		note(held, next)
		is("another event, while relays have died with the first", event, "2,f")
		// Its owner dies while it is another event that is sent: that speaks for the first. Then one with it in flight.
		for _, want := range []core.Acquired{{NotedCount: 1, CrashCount: 4}, {NotedCount: 2, CrashCount: 5}} {
			w.end(t, held.Owner)
			held = w.take(t, w.register(t), 1, lane)
			if got := held.taken; len(got) != 1 || got[0].NotedEvent != event || got[0].NotedCount != want.NotedCount ||
				got[0].CrashCount != want.CrashCount {
				t.Errorf("taken: %+v, want %+v", got, want)
			}
			note(held, event)
		}
		if answer := w.settle(t, &core.Settle{
			Owner: held.Owner, Lanes: held.lanes(), ClearNotes: held.lanes(),
		}); !answer.Applied || noted() != "" {
			t.Errorf("cleared: %s, %+v", noted(), answer)
		}
		if n := w.count(t, "SELECT crash_count FROM {schema}.outbox_lanes WHERE lane = $1", lane); n != 0 {
			t.Errorf("cleared: %d crashes", n)
		}
	})
}

// TestSaveRoutes: what is listed stands there, what is not is forgotten, and the time is that of the change.
func TestSaveRoutes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		relay, other := w.register(t).Relay, w.register(t).Relay
		save := func(relay outbox.ID, routes ...core.RouteStatus) {
			t.Helper()
			if err := w.store.SaveRoutes(t.Context(), relay, routes); err != nil {
				t.Fatal(err)
			}
		}
		routes := func() []string {
			return w.rows(t, "SELECT topic, paused, by_operator, error FROM {schema}.outbox_topics WHERE relay = $1 ORDER BY 1",
				relay.String())
		}
		changed := func() []string {
			return w.rows(t, "SELECT changed_at FROM {schema}.outbox_topics WHERE relay = $1 ORDER BY topic", relay.String())
		}
		save(other, core.RouteStatus{Topic: "a"})
		save(relay, core.RouteStatus{Topic: "b", Paused: true, Error: "down\x00"}, core.RouteStatus{Topic: "a"})
		if got := routes(); !slices.Equal(got, []string{`(a,f,f,"")`, `(b,t,f,down)`}) {
			t.Errorf("routes %v", got)
		}
		before := changed()
		save(relay, core.RouteStatus{Topic: "a"}, core.RouteStatus{Topic: "b", Paused: true, Error: "still down"})
		if got := changed(); !slices.Equal(got, before) {
			t.Errorf("changed at %v, before %v", got, before)
		}
		save(relay, core.RouteStatus{Topic: "b", Paused: true, ByOperator: true, Error: "still down"})
		if got := routes(); !slices.Equal(got, []string{`(b,t,t,"still down")`}) || changed()[0] != before[1] {
			t.Errorf("routes %v, changed at %v, before %v", got, changed(), before)
		}
		save(relay, core.RouteStatus{Topic: "b"})
		if got := routes(); !slices.Equal(got, []string{`(b,f,f,"")`}) || changed()[0] == before[1] {
			t.Errorf("routes %v, changed at %v, before %v", got, changed(), before)
		}
		save(relay)
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_topics"); n != 1 {
			t.Errorf("%d routes, want that of the other relay", n)
		}
		w.end(t)
		save(other, core.RouteStatus{Topic: "a"})
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_topics"); n != 0 {
			t.Errorf("%d routes of relays that were ended", n)
		}
	})
}
