package pgstore_test

import (
	"reflect"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// TestHeartbeat: it registers the relay, says how far it is, and answers who is there.
func TestHeartbeat(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		one := w.register(t)
		first := w.look(t, one)
		if first.Ended || len(first.Held) != 0 || len(first.Lanes) != 64 || first.Incarnation != w.fence(t).Incarnation ||
			!reflect.DeepEqual(first.Relays, []core.Peer{{ID: one.Relay, KnownTypes: []string{}}}) {
			t.Fatalf("answered %+v", first)
		}
		for i, lane := range first.Lanes {
			if lane.Lane != int16(i)+1 || lane.Owner != (outbox.ID{}) || len(lane.Needs) != 0 {
				t.Errorf("a fresh lane is %+v", lane)
			}
		}
		two := w.take(t, w.register(t, "b", "a"), 3, 3, 4, 5)
		w.exec(t, "UPDATE {schema}.outbox_lanes SET crash_count = 2, floor = 10 WHERE lane IN (3, 4)")
		three, four, six := two.at(3, 12), two.at(4, 9), two.at(6, 99)
		four.Calm, four.Needs = true, []string{"x", "y"}
		second := w.beat(t, core.Heartbeat{
			Owner: two.Owner, Lanes: []core.Progress{four, three, six}, Met: []outbox.ID{one.Relay},
		})
		peers := []core.Peer{{ID: one.Relay}, {ID: two.Relay, KnownTypes: []string{"a", "b"}}}
		slices.SortFunc(peers, func(a, b core.Peer) int { return slices.Compare(a.ID[:], b.ID[:]) })
		if second.Ended || !slices.Equal(second.Held, []int16{3, 4, 5}) || !reflect.DeepEqual(second.Relays, peers) {
			t.Fatalf("answered %+v", second)
		}
		if lane := second.Lanes[3]; lane.Lane != 4 || lane.Owner != two.Relay {
			t.Errorf("lane 4 is %+v", lane)
		}
		// What a beat says of a lane that is not the relay's is nobody's.
		want := []string{"(3,12,2,{},t)", `(4,10,0,"{x,y}",t)`, "(5,0,0,{},t)", "(6,0,0,{},)"}
		got := w.rows(t, "SELECT lane, floor, crash_count, needs, lease_until > now() + interval '20 min' "+
			"FROM {schema}.outbox_lane_status WHERE lane BETWEEN 3 AND 6 ORDER BY 1")
		if !slices.Equal(got, want) {
			t.Errorf("while it lives: lanes, floors and crashes %v, want %v", got, want)
		}
		// The next owners find it on the lanes, and one death more.
		if ended := w.end(t, two.Owner); !slices.Equal(ended, []outbox.ID{two.Relay}) {
			t.Errorf("ended %v", ended)
		}
		want = []string{"(3,12,3,{},t)", `(4,10,1,"{x,y}",t)`, "(5,0,1,{},t)", "(6,0,0,{},f)"}
		got = w.rows(t, "SELECT lane, floor, crash_count, needs, crashed FROM {schema}.outbox_lanes "+
			"WHERE owner IS NULL AND token IS NULL AND lane BETWEEN 3 AND 6 ORDER BY 1")
		if !slices.Equal(got, want) {
			t.Errorf("ended: lanes, floors and crashes %v, want %v", got, want)
		}
		if view := w.look(t, one).Lanes[3]; !slices.Equal(view.Needs, []string{"x", "y"}) {
			t.Errorf("the free lane is %+v", view)
		}
	})
}

// look is a heartbeat that does not beat.
func (w *world) look(t testing.TB, owner core.Owner) core.HeartbeatAnswer {
	t.Helper()
	return must(w.store.Heartbeat(t.Context(), core.Heartbeat{Owner: owner}))(t)
}

// TestWhoIsThere: a relay that has expired is listed as such and comes back with its next beat; an ended one is gone.
func TestWhoIsThere(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		one := w.register(t)
		early := w.beats.Add(1)
		two := w.register(t)
		expired := func() (list []bool) {
			t.Helper()
			for _, peer := range w.look(t, one).Relays {
				if peer.ID == two.Relay {
					list = append(list, peer.Expired)
				}
			}
			return list
		}
		w.expire(t, two)
		if got := expired(); !slices.Equal(got, []bool{true}) || w.look(t, two).Ended {
			t.Errorf("expired: %v", got)
		}
		w.beat(t, core.Heartbeat{Owner: two})
		if len(w.endExpired(t, false)) != 0 || !slices.Equal(expired(), []bool{false}) {
			t.Errorf("beaten again: %v", expired())
		}
		// Only the highest number counts: a beat that was stuck in a connection revives nobody.
		w.expire(t, two)
		must(w.store.Heartbeat(t.Context(), core.Heartbeat{Owner: two, Number: early, Lease: lease}))(t)
		if got := expired(); !slices.Equal(got, []bool{true}) {
			t.Errorf("a late beat revived it: %v", got)
		}
		if ended := w.endExpired(t, false); !slices.Equal(ended, []outbox.ID{two.Relay}) || len(expired()) != 0 {
			t.Errorf("ended %v, and it is listed %v", ended, expired())
		}
		if ended := w.endExpired(t, false); len(ended) != 0 {
			t.Errorf("ended twice: %v", ended)
		}
		stranger := core.Owner{Relay: one.Relay, Token: two.Token}
		before := w.count(t, "SELECT count(*) FROM {schema}.outbox_beats")
		for _, owner := range []core.Owner{two, stranger, newOwner()} {
			if answer := w.beat(t, core.Heartbeat{Owner: owner}); !answer.Ended || answer.Held != nil ||
				len(answer.Relays) != 1 || len(answer.Lanes) != 64 {
				t.Errorf("a beat of nobody is answered %+v", answer)
			}
		}
		// Registered again it is what it was.
		if answer := w.beat(t, core.Heartbeat{Owner: two, Register: &core.Registration{Name: "r"}}); !answer.Ended {
			t.Error("an ended relay came back")
		}
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_beats"); n != before {
			t.Errorf("%d beats of nobody", n-before)
		}
	})
}

// TestOldBeatsAreForgotten: those that the relay names, and never the newest of another.
func TestOldBeatsAreForgotten(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		one, two := w.register(t), w.register(t)
		for range 5 {
			w.beat(t, core.Heartbeat{Owner: one})
		}
		last := w.beats.Load()
		w.beat(t, core.Heartbeat{Owner: one, From: last - 2, Below: last})
		got := w.rows(t, "SELECT number - $2 FROM {schema}.outbox_beats WHERE relay = $1 AND number >= $2 - 3 ORDER BY 1",
			one.Relay.String(), last)
		if !slices.Equal(got, []string{"(-3)", "(0)", "(1)"}) {
			t.Errorf("beside the last the beats are %v, want two gone", got)
		}
		if !w.lives(t, two) {
			t.Error("the beat of another relay is gone")
		}
		// A relay that ended long ago goes, with all that it said, when another starts.
		w.end(t, one)
		w.register(t)
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_relays"); n != 3 {
			t.Errorf("%d relays, want 3", n)
		}
		w.exec(t, "UPDATE {schema}.outbox_relays SET ended_at = now() - interval '25 hours' WHERE id = $1",
			one.Relay.String())
		w.register(t)
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_beats WHERE relay = $1", one.Relay.String()); n != 0 ||
			w.count(t, "SELECT count(*) FROM {schema}.outbox_relays") != 3 {
			t.Errorf("%d beats of a relay that is forgotten", n)
		}
	})
}

// TestAnOwnerThatDiedSoonDied: the death of a relay counts in each of its lanes, also in one that its last beat did not
// know of yet. What it said last of a lane counts: calm, the count begins anew. Who was out of touch counts no death.
func TestAnOwnerThatDiedSoonDied(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, test := range []struct {
			name    string
			calm    []bool // of each beat after the acquisition
			away    bool   // who ends it has been out of touch
			crashes int
		}{
			{"no beat knew of the lane", nil, false, 4},
			{"never calm", []bool{false}, false, 4},
			{"calm", []bool{false, true}, false, 1},
			{"calm, and then not", []bool{true, false}, false, 4},
			{"away", nil, true, 3},
			{"away, calm", []bool{true}, true, 0},
		} {
			held := w.take(t, w.register(t), 2, 11, 12)
			w.exec(t, "UPDATE {schema}.outbox_lanes SET crash_count = 3 WHERE lane IN (11, 12)")
			for i, calm := range test.calm {
				progress := held.at(11, int64(i))
				progress.Calm = calm
				w.beat(t, core.Heartbeat{Owner: held.Owner, Lanes: []core.Progress{progress}})
			}
			w.expire(t)
			if ended := w.endExpired(t, test.away); !slices.Equal(ended, []outbox.ID{held.Relay}) {
				t.Errorf("%s: ended %v", test.name, ended)
			}
			next := w.take(t, w.register(t), 2, 11, 12)
			other := 4
			if test.away {
				other = 3
			}
			if got := next.taken; len(got) != 2 || got[0].CrashCount != test.crashes || !got[0].Crashed ||
				got[1].CrashCount != other || !got[1].Crashed {
				t.Errorf("%s: took %+v, want %d crashes", test.name, got, test.crashes)
			}
			if err := w.store.Release(t.Context(), core.Release{Owner: next.Owner, End: true}); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestEndExpiredInSlices: no more than asked for, and neither one that lives nor the one that asks.
func TestEndExpiredInSlices(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		living, asking := w.register(t, "a"), w.register(t)
		dead := []core.Owner{asking}
		for range 5 {
			dead = append(dead, w.register(t, "b"))
		}
		w.expire(t, dead...)
		for _, want := range []int{2, 2, 1, 0} {
			end := core.EndExpired{Relay: asking.Relay, Max: 2}
			if ended := must(w.store.EndExpired(t.Context(), end))(t); len(ended) != want {
				t.Errorf("ended %v, want %d", ended, want)
			}
		}
		if w.isEnded(t, living) || w.isEnded(t, asking) {
			t.Error("a relay was ended that lives, or that asked")
		}
		if known := w.rows(t, "SELECT event_type FROM {schema}.outbox_known"); !slices.Equal(known, []string{"(a)"}) {
			t.Errorf("known are %v, want what the living relay knows", known)
		}
	})
}

// TestAFloorBelongsToItsServer: after a failover to a standby that missed settles, a floor from before would hide
// events, and so would what was swept. What was written there before stays. The relay itself lives on, and its lane is
// given back as ever.
func TestAFloorBelongsToItsServer(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held := w.hold(t, "1")
		here := w.fence(t).Incarnation
		floor := func(of string) int {
			return w.count(t, "SELECT floor FROM {schema}."+of+" WHERE lane = $1", held.lane())
		}
		at := func(floor int64) core.Progress {
			progress := held.at(held.lane(), floor)
			progress.Swept = floor
			return progress
		}
		taken := func() {
			if held = w.hold(t, "1"); held.taken[0].Swept != held.taken[0].Floor {
				t.Errorf("taken: %+v, want it swept up to the floor", held.taken[0])
			}
		}
		w.exec(t, "UPDATE {schema}.outbox_lanes SET floor = 3, swept = 3 WHERE lane = $1", held.lane())
		for _, beat := range []struct {
			floor       int64
			incarnation string
			want        int
		}{{2, here, 3}, {5, here, 5}, {6, "1" + here, 5}, {7, "", 7}, {8, "1" + here, 7}, {4, here, 7}} {
			answer := w.beat(t, core.Heartbeat{
				Owner: held.Owner, Incarnation: beat.incarnation, Lanes: []core.Progress{at(beat.floor)},
			})
			if !slices.Equal(answer.Held, held.lanes()) || floor("outbox_lane_status") != beat.want {
				t.Errorf("beaten: held %v, the floor is %d, want %d", answer.Held, floor("outbox_lane_status"), beat.want)
			}
		}
		for _, give := range []struct {
			floor       int64
			incarnation string
			want        int
		}{{8, "1" + here, 7}, {9, here, 9}, {10, "", 10}} {
			if err := w.store.Release(t.Context(), core.Release{
				Owner: held.Owner, Lanes: []core.Progress{at(give.floor)}, Incarnation: give.incarnation,
			}); err != nil {
				t.Error(err)
			}
			n := w.count(t, "SELECT count(*) FROM {schema}.outbox_lanes WHERE owner IS NOT NULL")
			if n != 0 || floor("outbox_lanes") != give.want {
				t.Errorf("given back: %d lanes are held, the floor is %d, want %d", n, floor("outbox_lanes"), give.want)
			}
			taken()
		}
		// Also by others, when the relay that said it has died.
		for _, last := range []struct {
			floor       int64
			incarnation string
			want        int
		}{{99, "1" + here, 10}, {12, here, 12}} {
			w.beat(t, core.Heartbeat{
				Owner: held.Owner, Incarnation: last.incarnation, Lanes: []core.Progress{at(last.floor)},
			})
			if w.end(t); floor("outbox_lanes") != last.want {
				t.Errorf("ended: the floor is %d, want %d", floor("outbox_lanes"), last.want)
			}
			taken()
		}
	})
}
