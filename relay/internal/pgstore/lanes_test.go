package pgstore_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// TestHeartbeat: it registers the relay, renews what it holds, and answers who is there.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		one, two := outbox.NewID(), outbox.NewID()
		first, err := w.store.Heartbeat(t.Context(), core.Heartbeat{Relay: one, Name: "one", Lease: lease})
		if err != nil || len(first.Renewed) != 0 || len(first.Lanes) != 64 || len(first.Relays) != 1 ||
			first.Relays[0].ID != one {
			t.Fatalf("answered %+v, %v", first, err)
		}
		for i, lane := range first.Lanes {
			if lane.Lane != int16(i) || !lane.Free || lane.Owner != (outbox.ID{}) || len(lane.Needs) != 0 {
				t.Errorf("a fresh lane is %+v", lane)
			}
		}
		token := outbox.NewID()
		if _, err := w.store.Acquire(t.Context(), core.Acquire{
			Relay: two, Token: token, Lanes: []int16{3, 4, 5}, Max: 3, Lease: lease,
		}); err != nil {
			t.Fatal(err)
		}
		w.exec(t, "UPDATE {schema}.outbox_lanes SET crash_count = 2, floor = 10 WHERE lane IN (3, 4)")
		w.exec(t, "UPDATE {schema}.outbox_lanes SET lease_until = clock_timestamp() - interval '1 s' WHERE lane = 5")
		beat := core.Heartbeat{
			Relay: two, Name: "two", Version: "v1", KnownTypes: []string{"b", "a"}, Lease: lease, Lanes: []core.Renewal{
				{Tenure: core.Tenure{Lane: 4, Token: token}, Floor: 9, Calm: true, Needs: []string{"x", "y"}},
				{Tenure: core.Tenure{Lane: 3, Token: token}, Floor: 12},
				{Tenure: core.Tenure{Lane: 6, Token: token}, Floor: 99},
				{Tenure: core.Tenure{Lane: 5, Token: outbox.NewID()}, Floor: 99},
			},
		}
		second, err := w.store.Heartbeat(t.Context(), beat)
		if err != nil || !slices.Equal(second.Renewed, []int16{3, 4}) || len(second.Relays) != 2 {
			t.Fatalf("answered %+v, %v", second, err)
		}
		if !reflect.DeepEqual(second.Lanes[4], core.LaneView{Lane: 4, Owner: two, Needs: []string{"x", "y"}}) {
			t.Errorf("lane 4 is %+v", second.Lanes[4])
		}
		if lane := second.Lanes[5]; !lane.Free || lane.Owner != two {
			t.Errorf("an expired lane is %+v", lane)
		}
		want := []string{"(3,12,2)", "(4,10,0)", "(5,0,0)", "(6,0,0)"}
		if got := w.rows(t,
			"SELECT lane, floor, crash_count FROM {schema}.outbox_lanes WHERE lane BETWEEN 3 AND 6 ORDER BY 1"); !slices.Equal(
			got, want) {
			t.Errorf("lanes, floors and crashes %v, want %v", got, want)
		}
		// A relay that is not heard of any more is not listed; one that is heard of again is.
		w.exec(t, "UPDATE {schema}.outbox_relays SET alive_until = clock_timestamp() - interval '1 s' WHERE id = $1",
			two.String())
		third, err := w.store.Heartbeat(t.Context(), core.Heartbeat{Relay: one, Name: "one", Lease: lease})
		if err != nil || len(third.Relays) != 1 {
			t.Errorf("answered %+v, %v", third.Relays, err)
		}
		fourth, err := w.store.Heartbeat(t.Context(), core.Heartbeat{
			Relay: two, Name: "two", Lease: lease, KnownTypes: []string{"c"},
		})
		if err != nil || len(fourth.Relays) != 2 || !slices.Equal(fourth.Relays[1].KnownTypes, []string{"c"}) {
			t.Errorf("answered %+v, %v", fourth.Relays, err)
		}
	})
}

// TestAcquire: lanes that are free or expired, in the order of the list, no more than asked for. Only an
// expired lease counts as a crash.
func TestAcquire(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		take := func(limit int, lanes ...int16) []core.Acquired {
			t.Helper()
			taken, err := w.store.Acquire(t.Context(), core.Acquire{
				Relay: outbox.NewID(), Token: outbox.NewID(), Lanes: lanes, Max: limit, Lease: lease,
			})
			if err != nil {
				t.Fatal(err)
			}
			return taken.Lanes
		}
		if got := take(2, 9, 7, 8); !slices.Equal(got, []core.Acquired{{Lane: 9}, {Lane: 7}}) {
			t.Errorf("took %+v", got)
		}
		if got := take(9, 7, 8, 9); !slices.Equal(got, []core.Acquired{{Lane: 8}}) {
			t.Errorf("took %+v, and two of the three were held", got)
		}
		if got := take(9); len(got) != 0 {
			t.Errorf("took %+v, and asked for none", got)
		}
		noted := outbox.NewID()
		w.exec(t, "UPDATE {schema}.outbox_lanes SET marked_event = $1, marked_by = token, marked_count = 1, floor = 5 WHERE "+
			"lane IN (7, 20)", noted.String())
		w.expire(t)
		want := []core.Acquired{
			{Lane: 20, Floor: 5, NotedEvent: noted, NotedCount: 1},
			{Lane: 7, Floor: 5, Crashed: true, CrashCount: 1, NotedEvent: noted, NotedCount: 2},
			{Lane: 8, Crashed: true, CrashCount: 1},
		}
		if got := take(3, 20, 7, 8, 9); !slices.Equal(got, want) {
			t.Errorf("took %+v, want %+v", got, want)
		}
	})
}

// TestAnOwnerThatDiedSoonDied: a heartbeat that came just after the acquisition, and did not know of it yet, lets the
// owner look alive for a moment when the lease has ended. One that is alive goes on with its heartbeats.
func TestAnOwnerThatDiedSoonDied(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, test := range []struct {
			ahead   string // by how much the owner's own life outlasts the lane's lease
			away    bool   // the next one has been out of touch
			crashes int
		}{{"-1 ms", false, 1}, {"5 minutes", false, 1}, {"20 minutes", false, 0}, {"-1 ms", true, 0}} {
			owner := outbox.NewID()
			if _, err := w.store.Heartbeat(t.Context(), core.Heartbeat{Relay: owner, Name: "owner", Lease: lease}); err != nil {
				t.Fatal(err)
			}
			take := core.Acquire{Relay: owner, Token: outbox.NewID(), Lanes: []int16{11}, Max: 1, Lease: lease}
			if _, err := w.store.Acquire(t.Context(), take); err != nil {
				t.Fatal(err)
			}
			w.exec(t, "UPDATE {schema}.outbox_lanes SET crash_count = 0, lease_until = clock_timestamp() - interval '1 us' "+
				"WHERE lane = 11")
			w.exec(t, "UPDATE {schema}.outbox_relays SET alive_until = clock_timestamp() + $2::text::interval WHERE id = "+
				"$1::text::uuid", owner.String(), test.ahead)
			take.Relay, take.Token, take.Away = outbox.NewID(), outbox.NewID(), test.away
			got, err := w.store.Acquire(t.Context(), take)
			if err != nil || len(got.Lanes) != 1 || got.Lanes[0].CrashCount != test.crashes {
				t.Errorf("%s: took %+v, %v, want %d crashes", test.ahead, got, err, test.crashes)
			}
			w.exec(t, "UPDATE {schema}.outbox_lanes SET owner = NULL, token = NULL, lease_until = NULL WHERE lane = 11")
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
			w.exec(t, "UPDATE {schema}.outbox_lanes SET owner = NULL, token = NULL, lease_until = NULL")
			if _, err := conn.Exec(t.Context(), "BEGIN; "+plan); err != nil {
				t.Fatal(err)
			}
			token := outbox.NewID()
			if _, err := conn.Exec(t.Context(), statement("acquire", w), allLanes(), int32(5), token.String(), token.String(),
				lease.Microseconds(), false); err != nil {
				t.Fatal(err)
			}
			if _, err := conn.Exec(t.Context(), "COMMIT; RESET ALL"); err != nil {
				t.Fatal(err)
			}
			conn.Release()
			if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE token = $1", token.String()); n != 5 {
				t.Errorf("%s: took %d lanes, want 5", plan, n)
			}
		}
	})
}

// TestRelease: by lane and token with what was reached, and by token alone; a stale one changes nothing.
func TestRelease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		token, _ := w.acquire(t)
		w.exec(t, "UPDATE {schema}.outbox_lanes SET crash_count = 1")
		err := w.store.Release(t.Context(), core.Release{Lanes: []core.Renewal{
			{Tenure: core.Tenure{Lane: 2, Token: token}, Floor: 7, Calm: true, Needs: []string{"x"}},
			{Tenure: core.Tenure{Lane: 1, Token: token}},
			{Tenure: core.Tenure{Lane: 3, Token: outbox.NewID()}, Floor: 9},
		}, Tokens: []outbox.ID{outbox.NewID()}})
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"(0,f,0,1,{})", "(1,t,0,1,{})", "(2,t,7,0,{x})", "(3,f,0,1,{})"}
		got := w.rows(t, "SELECT lane, owner IS NULL AND token IS NULL AND lease_until IS NULL, floor, crash_count, needs "+
			"FROM {schema}.outbox_lanes WHERE lane < 4 ORDER BY 1")
		if !slices.Equal(got, want) {
			t.Errorf("lanes are %v, want %v", got, want)
		}
		if err := w.store.Release(t.Context(), core.Release{Tokens: []outbox.ID{outbox.NewID(), token}}); err != nil {
			t.Fatal(err)
		}
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NULL"); n != 64 {
			t.Errorf("%d lanes are free", n)
		}
		if err := w.store.Release(t.Context(), core.Release{}); err != nil {
			t.Error(err)
		}
		// Released and taken again is no crash.
		if _, taken := w.acquire(t); len(taken) != 64 || taken[1].Crashed || taken[1].CrashCount != 1 {
			t.Errorf("took %d lanes, the second %+v", len(taken), taken[1])
		}
	})
}

// TestNote: the event that is about to be sent alone, as long as the lane is held; another begins anew.
func TestNote(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		tenure, event := w.hold(t, "1"), outbox.NewID()
		note := func(tenure core.Tenure, event outbox.ID) bool {
			t.Helper()
			return must(w.store.Note(t.Context(), tenure, event, event == outbox.ID{}))(t)
		}
		noted := func() string {
			return w.rows(t, "SELECT marked_event, marked_count FROM {schema}.outbox_lanes WHERE lane = $1", tenure.Lane)[0]
		}
		if !note(tenure, event) || note(core.Tenure{Lane: tenure.Lane, Token: outbox.NewID()}, outbox.NewID()) {
			t.Error("the lane's holder was refused, or another was not")
		}
		w.exec(t, "UPDATE {schema}.outbox_lanes SET marked_count = 2, crash_count = 3 WHERE lane = $1", tenure.Lane)
		if note(tenure, event); noted() != "("+event.String()+",2)" {
			t.Errorf("noted again: %s", noted())
		}
		w.exec(t, "UPDATE {schema}.outbox_lanes SET marked_count = 3 WHERE lane = $1", tenure.Lane)
		must(w.store.Note(t.Context(), tenure, outbox.ID{}, false))(t)
		if note(tenure, event); noted() != "("+event.String()+",3)" {
			t.Errorf("not sent: %s", noted())
		}
		if note(tenure, outbox.ID{}); noted() != "("+event.String()+",2)" {
			t.Errorf("outlived once: %s", noted())
		}
		if note(tenure, outbox.ID{}); noted() != "("+event.String()+",2)" {
			t.Errorf("told so twice: %s", noted())
		}
		other := outbox.NewID()
		if note(tenure, other); noted() != "("+event.String()+",2)" {
			t.Errorf("another event, while relays have died with the first: %s", noted())
		}
		// Its owner dies while it is another event that is sent: the lane can be taken, and that speaks for the first.
		w.exec(t, "UPDATE {schema}.outbox_lanes SET lease_until = now() - interval '1 s' WHERE lane = $1", tenure.Lane)
		next := core.Acquire{Relay: outbox.NewID(), Token: outbox.NewID(), Lanes: []int16{tenure.Lane}, Max: 1, Lease: lease}
		if taken := must(w.store.Acquire(t.Context(), next))(t).Lanes; len(taken) != 1 || taken[0].NotedCount != 1 ||
			taken[0].CrashCount != 4 {
			t.Errorf("taken: %+v", taken)
		}
		tenure.Token = next.Token
		if answer := w.settle(t, &core.Settle{
			Lanes: []core.Tenure{tenure}, ClearNotes: []core.Tenure{tenure},
		}); !answer.Applied || noted() != "(,0)" {
			t.Errorf("cleared: %s, %+v", noted(), answer)
		}
		if n := w.count(t, "SELECT crash_count FROM {schema}.outbox_lanes WHERE lane = $1", tenure.Lane); n != 0 {
			t.Errorf("cleared: %d crashes", n)
		}
	})
}

// TestSaveRoutes: what is listed stands there, what is not is forgotten, and the time is that of the change.
func TestSaveRoutes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		relay, other := outbox.NewID(), outbox.NewID()
		for _, id := range []outbox.ID{relay, other} {
			if _, err := w.store.Heartbeat(t.Context(), core.Heartbeat{Relay: id, Name: "r", Lease: lease}); err != nil {
				t.Fatal(err)
			}
		}
		save := func(relay outbox.ID, routes ...core.RouteStatus) {
			t.Helper()
			if err := w.store.SaveRoutes(t.Context(), relay, routes); err != nil {
				t.Fatal(err)
			}
		}
		routes := func() []string {
			return w.rows(t, "SELECT topic, paused, error FROM {schema}.outbox_topics WHERE relay = $1 ORDER BY 1",
				relay.String())
		}
		changed := func() []string {
			return w.rows(t, "SELECT changed_at FROM {schema}.outbox_topics WHERE relay = $1 ORDER BY topic", relay.String())
		}
		save(other, core.RouteStatus{Topic: "a"})
		save(relay, core.RouteStatus{Topic: "b", Paused: true, Error: "down\x00"}, core.RouteStatus{Topic: "a"})
		if got := routes(); !slices.Equal(got, []string{`(a,f,"")`, `(b,t,down)`}) {
			t.Errorf("routes %v", got)
		}
		before := changed()
		save(relay, core.RouteStatus{Topic: "a"}, core.RouteStatus{Topic: "b", Paused: true, Error: "still down"})
		if got := changed(); !slices.Equal(got, before) {
			t.Errorf("changed at %v, before %v", got, before)
		}
		save(relay, core.RouteStatus{Topic: "b"})
		if got := routes(); !slices.Equal(got, []string{`(b,f,"")`}) || changed()[0] == before[1] {
			t.Errorf("routes %v, changed at %v, before %v", got, changed(), before)
		}
		save(relay)
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_topics"); n != 1 {
			t.Errorf("%d routes, want that of the other relay", n)
		}
		w.exec(t, "DELETE FROM {schema}.outbox_relays")
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_topics"); n != 0 {
			t.Errorf("%d routes of relays that are gone", n)
		}
	})
}

// TestAFloorBelongsToItsServer: after a failover to a standby that missed settles, a floor from before would hide
// events. The lane itself is renewed and given back as ever.
func TestAFloorBelongsToItsServer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		tenure := w.hold(t, "1")
		here := w.fence(t).Incarnation
		floor := func() int {
			return w.count(t, "SELECT floor FROM {schema}.outbox_lanes WHERE lane = $1", tenure.Lane)
		}
		renew := func(floor int64, incarnation string) {
			t.Helper()
			beat, err := w.store.Heartbeat(t.Context(), core.Heartbeat{
				Relay: outbox.NewID(), Name: "r", Lease: lease, Incarnation: incarnation,
				Lanes: []core.Renewal{{Tenure: tenure, Floor: floor}},
			})
			if err != nil || !slices.Equal(beat.Renewed, []int16{tenure.Lane}) {
				t.Errorf("renewed %v, %v", beat.Renewed, err)
			}
		}
		renew(5, here)
		renew(6, "1"+here)
		if got := floor(); got != 5 {
			t.Errorf("the floor is %d, want 5", got)
		}
		renew(7, "")
		if got := floor(); got != 7 {
			t.Errorf("the floor is %d, want 7", got)
		}
		if err := w.store.Release(t.Context(), core.Release{
			Lanes: []core.Renewal{{Tenure: tenure, Floor: 8}}, Incarnation: "1" + here,
		}); err != nil {
			t.Error(err)
		}
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL"); n != 0 || floor() != 7 {
			t.Errorf("given back: %d lanes are held, the floor is %d", n, floor())
		}
	})
}
