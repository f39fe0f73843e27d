package core_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// What a sweep finds of a topic with a reader of its own is read by that reader once the topic is back: the main read
// leaves the topic out.
func TestASweptEventOfAPausedTopic(t *testing.T) {
	t.Parallel()
	p := newPlace(1)
	r := p.relay(t, registry{"a": {Topic: "one"}, "b": {Topic: "two"}}, func(c *core.Config) {
		c.SweepPeriod = 20 * time.Second
	})
	r.pass(time.Second)
	drawn := p.store.Begin()
	number, err := drawn.Draw()
	if err != nil {
		t.Fatal(err)
	}
	drawn.Rollback()
	for i := range 20 {
		p.emit(t, "0", fmt.Sprint(i), []string{"a", "b"}[i%2])
	}
	r.pass(15 * time.Second) // all are published, and the floor is above all
	p.pause(t, core.ScopeTopic, "one")
	r.pass(heard)
	tx := p.store.Begin() // with a number that it has not drawn: no fence can know of it
	event := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: "0", Type: "t", ID: "late"}, Payload: []byte("{}"),
	}
	if err := tx.EmitAt(number, event); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	r.pass(10 * time.Second)
	if len(r.alarms) == 0 {
		t.Fatal("no sweep has found the event")
	}
	p.resume(t, core.ScopeTopic, "one")
	r.pass(5 * time.Second) // before another sweep finds it
	if state := p.state(t, event.ID); state != core.Published {
		t.Errorf("the event is in state %d when its topic has come back, the alarms are %q", state, r.alarms)
	}
}

// below writes events with numbers that nobody has drawn, as a restore of one table without the other does.
func (p *place) below(t *testing.T, lane string, numbers ...int64) (ids []outbox.ID) {
	t.Helper()
	tx := p.store.Begin()
	for _, number := range numbers {
		event := core.Event{
			ID: p.id(), Type: "a", Payload: []byte("{}"),
			Aggregate: core.Aggregate{Namespace: lane, Type: "t", ID: fmt.Sprint("late", number)},
		}
		if err := tx.EmitAt(number, event); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, event.ID)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return ids
}

// Whatever is below a floor is found: more than one look brings, in lanes behind others, below what was swept before,
// and if the server is restarted between the find and the read.
func TestASweepFindsAll(t *testing.T) {
	t.Parallel()
	p := newPlace(2)
	gap := p.store.Begin()
	for range 300 {
		if _, err := gap.Draw(); err != nil {
			t.Fatal(err)
		}
	}
	gap.Rollback()
	r := p.relay(t, registry{"a": {Topic: "one"}}, func(c *core.Config) { c.SweepPeriod = 5 * time.Second })
	p.emit(t, "0", "x", "a")
	p.emit(t, "1", "x", "a")
	r.pass(time.Minute) // the floor is above the gap, and all of it was swept
	var first, second []int64
	for number := range int64(100) {
		first, second = append(first, 1+number), append(second, 150+number)
	}
	late := append(p.below(t, "0", first...), p.below(t, "1", second...)...)
	r.pass(6 * time.Second)
	if len(r.alarms) == 0 {
		t.Fatal("no sweep has found the events")
	}
	p.store.Restart()
	r.pass(5 * time.Minute)
	for _, id := range late {
		if state := p.state(t, id); state != core.Published {
			t.Fatalf("an event below the floor is in state %d, alarms: %d", state, len(r.alarms))
		}
	}
}
