package core_test

import (
	"fmt"
	"testing"
	"time"

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
	r.pass(time.Minute)
	if state := p.state(t, event.ID); state != core.Published {
		t.Errorf("the event is in state %d a minute after its topic came back, the alarms are %q", state, r.alarms)
	}
}
