package pgstore_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

func aggregate(id string) core.Aggregate {
	return core.Aggregate{Namespace: "default", Type: "order", ID: id}
}

// TestHeldKeys: the first held row of each aggregate and type, in the lanes asked for.
func TestHeldKeys(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, state := range []core.State{
			core.Ready, core.Dead, core.Published, core.Discarded, core.DeadBlocking, core.Retrying,
		} {
			w.addType(t, "1", "a", state)
		}
		w.addType(t, "1", "b", core.Waiting)
		w.addType(t, "1", "b", core.Parked)
		retrying := w.addType(t, "2", "a", core.Retrying)
		w.heldAt(t, retrying, "clock_timestamp() + interval '1 hour'")
		one, two := w.lane(t, "1"), w.lane(t, "2")
		keys := must(w.store.HeldKeys(t.Context(), core.HeldKeys{Lanes: core.AllLines(two, one)}))(t).Keys
		if len(keys) != 3 {
			t.Fatalf("held are %+v", keys)
		}
		if due := keys[0].DueIn; due < 59*time.Minute || due > time.Hour {
			t.Errorf("due in %s", due)
		}
		keys[0].DueIn = 0
		want := []core.HeldKey{
			{Lane: two, Aggregate: aggregate("2"), EventType: "a", State: core.Retrying},
			{Lane: one, Aggregate: aggregate("1"), EventType: "a", State: core.DeadBlocking},
			{Lane: one, Aggregate: aggregate("1"), EventType: "b", State: core.Waiting},
		}
		if !slices.Equal(keys, want) {
			t.Errorf("held are %+v, want %+v", keys, want)
		}
		if keys := must(w.store.HeldKeys(t.Context(), core.HeldKeys{}))(t).Keys; len(keys) != 0 {
			t.Errorf("held in no lanes: %+v", keys)
		}
	})
}

// TestDueKeys: retries that are due, the last made due first, so many per lane, without the types left out.
func TestDueKeys(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for i, minutes := range []int{-1, 5, -3, -2} {
			id := w.addType(t, "1", string(rune('a'+i)), core.Retrying)
			w.heldAt(t, id, fmt.Sprintf("clock_timestamp() + %d * interval '1 minute'", minutes))
		}
		w.addType(t, "1", "w", core.Waiting)
		w.addType(t, "2", "x", core.Retrying)
		one, two := w.lane(t, "1"), w.lane(t, "2")
		for _, c := range []struct {
			due  core.DueKeys
			want string
		}{
			{core.DueKeys{Lanes: []core.LaneFrom{{Lane: one}, {Lane: two}}, Limit: 9}, "adcx"},
			{core.DueKeys{Lanes: []core.LaneFrom{{Lane: two}, {Lane: one}}, Limit: 2}, "xad"},
			{core.DueKeys{Lanes: []core.LaneFrom{{Lane: one}}, Limit: 2, Exclude: []string{"d"}}, "ac"},
			{core.DueKeys{Limit: 2}, ""},
		} {
			got := ""
			for _, key := range must(w.store.DueKeys(t.Context(), c.due))(t).Keys {
				got += key.EventType
				if key.State != core.Retrying || key.DueIn > 0 || key.Lane != one && key.Lane != two {
					t.Errorf("due is %+v", key)
				}
			}
			if got != c.want {
				t.Errorf("%+v: %q, want %q", c.due, got, c.want)
			}
		}
	})
}

// TestDueKeysInPages: each page goes on where the last one ended, also among rows of one time and at times far away.
func TestDueKeysInPages(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		lane := w.lane(t, "1")
		for i, at := range []string{
			"-infinity", "4713-11-25 BC", "0001-01-01 UTC", "1500-01-01", "2001-01-01", "2001-01-01", "2001-01-01", "2001-01-01",
			"infinity",
		} {
			id := w.addType(t, "1", string(rune('a'+i)), core.Retrying)
			w.heldAt(t, id, "timestamptz '"+at+"'")
		}
		got, after := "", core.HeldPlace{}
		for range 4 {
			for _, key := range must(w.store.DueKeys(t.Context(), core.DueKeys{
				Lanes: []core.LaneFrom{{Lane: lane, After: after}}, Limit: 3,
			}))(t).Keys {
				got += key.EventType
				after = key.Place
			}
			got += " "
		}
		if want := "hgf edc ba  "; got != want {
			t.Errorf("the pages are %q, want %q", got, want)
		}
	})
}

// TestHeldRows: of several aggregates at once, in order, of the types asked for, with payloads where they
// may be published.
func TestHeldRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, state := range []core.State{
			core.DeadBlocking, core.Retrying, core.Waiting, core.Parked, core.Ready, core.Published,
		} {
			w.addType(t, "1", "a", state)
		}
		b := w.addType(t, "1", "b", core.Waiting)
		other := w.addType(t, "2", "a", core.Retrying)
		one, two := w.lane(t, "1"), w.lane(t, "2")
		read := func(limit int, ask ...core.HeldAsk) []core.Event {
			t.Helper()
			return must(w.store.HeldRows(t.Context(), core.HeldRows{Asks: ask, Limit: limit}))(t).Events
		}
		both := []string{"b", "a"}
		all := read(9, core.HeldAsk{Lane: two, Aggregate: aggregate("2"), Types: both}, core.HeldAsk{
			Lane: one, Aggregate: aggregate("1"), Types: both,
		})
		var states []core.State
		for i, event := range all {
			states = append(states, event.State)
			publishable := event.State == core.Retrying || event.State == core.Waiting
			if want := payload(event.ID); publishable && string(event.Payload) != want || !publishable && event.Payload != nil {
				t.Errorf("%d: the payload of a row in state %d is %q", i, event.State, event.Payload)
			}
			if event.State == core.Retrying && event.DueIn > 0 {
				t.Errorf("due in %s", event.DueIn)
			}
		}
		want := []core.State{core.Retrying, core.DeadBlocking, core.Retrying, core.Waiting, core.Parked, core.Waiting}
		if !slices.Equal(states, want) || all[0].ID != other || all[5].ID != b || all[1].Seq > all[2].Seq {
			t.Errorf("read states %v, want %v", states, want)
		}
		ask := core.HeldAsk{Lane: one, Aggregate: aggregate("1"), Types: []string{"b", "x"}}
		if got := ids(read(9, ask, core.HeldAsk{Lane: two, Aggregate: aggregate("2"), Types: []string{"b"}})); !slices.Equal(
			got, []outbox.ID{b}) {
			t.Errorf("of type b are %v, want %v", got, b)
		}
		ask.Types = nil
		if got := read(9, ask); len(got) != 0 {
			t.Errorf("of no types are %v", got)
		}
		ask.Types = both
		if got := read(2, ask, core.HeldAsk{Lane: two, Aggregate: aggregate("2"), Types: both}); len(got) != 3 ||
			got[0].ID != all[1].ID || got[1].ID != all[2].ID {
			t.Errorf("at most 2 each: %+v", got)
		}
	})
}

// TestOldParked: rows that are parked for so long, whenever they were created, without payloads.
func TestOldParked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		old := w.add(t, "1", core.Parked)
		w.heldAt(t, old, "clock_timestamp() - interval '1 minute'")
		w.add(t, "1", core.Waiting)
		lanes := core.FromStart(w.lane(t, "1"))
		list := func(asked core.OldParked) []core.Event {
			t.Helper()
			asked.Lanes = lanes
			return must(w.store.OldParked(t.Context(), asked))(t).Events
		}
		if got := list(core.OldParked{Age: time.Hour, Limit: 9}); len(got) != 0 {
			t.Errorf("older than an hour: %+v", got)
		}
		got := list(core.OldParked{Limit: 9})
		if !slices.Equal(ids(got), []outbox.ID{old}) || got[0].Payload != nil || got[0].Aggregate != aggregate("1") ||
			got[0].State != core.Parked {
			t.Errorf("parked are %+v", got)
		}
		if got[0].Found() != w.found(t, old) {
			t.Errorf("found %+v, want %+v", got[0].Found(), w.found(t, old))
		}
		created := outbox.NewID() // two days ago, and parked just now
		w.exec(t, `INSERT INTO {schema}.outbox_events (id, created_at, event_type, aggregate_type, aggregate_id, 
			payload_json)
			VALUES ($1, now() - interval '2 days', 'order_created', 'order', '1', $2)`, created.String(), payload(created))
		w.move(t, created, core.Parked)
		if got := list(core.OldParked{Age: 30 * time.Second, Limit: 9}); !slices.Equal(ids(got), []outbox.ID{old}) {
			t.Errorf("parked for half a minute are %+v", got)
		}
		if got := list(core.OldParked{Exclude: []string{"order_created"}, Limit: 9}); len(got) != 0 {
			t.Errorf("of other types are %+v", got)
		}
		w.add(t, "1", core.Parked)
		if got := list(core.OldParked{Limit: 1}); len(got) != 1 {
			t.Errorf("at most 1: %d", len(got))
		}
		// A page of what is left out says how far it has come.
		page := must(w.store.OldParked(t.Context(), core.OldParked{
			Lanes: lanes, Exclude: []string{"order_created"}, Limit: 2,
		}))(t)
		if page.Looked != 2 || page.Lane != lanes[0].Lane || page.End.Seq != w.found(t, created).Seq || page.Events != nil {
			t.Errorf("a page of two: %+v", page)
		}
		lanes[0].After = page.End
		if next := must(w.store.OldParked(t.Context(), core.OldParked{Lanes: lanes, Limit: 2}))(t); next.Looked != 1 {
			t.Errorf("the next page: %+v", next)
		}
	})
}

// TestUnpark: rows of the known types, however many, in the lanes that are still held.
func TestUnpark(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		held, lost := w.hold(t, "1"), w.hold(t, "2")
		w.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state)
			SELECT id, 'a', 'order', '1', ('{"eventId":"' || id || '"}')::json, 1
			FROM (SELECT {schema}.outbox_uuid7() AS id FROM generate_series(1, 2500) OFFSET 0) g`)
		w.holdAll(t, "2")
		version := w.count(t, "SELECT max(version) FROM {schema}.outbox_held")
		unknown, waiting, elsewhere := w.addType(t, "1", "b", core.Parked), w.addType(t, "1", "a", core.Waiting),
			w.addType(t, "2", "a", core.Parked)
		if _, err := w.store.Unpark(t.Context(), core.Unpark{
			Owner: held.Owner, Lanes: core.FromStart(lost.lane(), held.lane()), Types: []string{"a", "c"},
		}); err != nil {
			t.Fatal(err)
		}
		if n := w.count(t, "SELECT count(*) FROM {schema}.outbox_held WHERE kind = 1 AND event_type = 'a' "+
			"AND since >= due AND due <= clock_timestamp() AND version > $1", version); n != 2500 {
			t.Errorf("%d rows are due, want 2500", n)
		}
		if w.state(t, unknown) != core.Parked || w.state(t, waiting) != core.Waiting || w.state(t, elsewhere) != core.Parked {
			t.Error("a row of another type, state or lane was unparked")
		}
	})
}

// TestAnySchemaName: names that need quoting, in identifiers and in literals.
func TestAnySchemaName(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		name := w.schema + ` it's a "schema" \ {types}`
		w.exec(t, "ALTER SCHEMA {schema} RENAME TO \""+w.schema+` it's a ""schema"" \ {types}"`)
		defer w.exec(t, "ALTER SCHEMA \""+w.schema+` it's a ""schema"" \ {types}" RENAME TO {schema}`)
		store := pgstore.New(w.pool, name)
		if _, err := store.Fence(t.Context()); err != nil {
			t.Error(err)
		}
		if _, err := store.Read(t.Context(), core.Read{Lanes: []core.LaneRead{{Limit: 1}}}); err != nil {
			t.Error(err)
		}
	})
}
