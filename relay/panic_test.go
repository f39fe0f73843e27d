package relay

import (
	"context"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// publishes hands an event to a sender, as one that was decided on just now.
func publishes(t *testing.T, s *sender, p *core.Publish) core.Outcome {
	t.Helper()
	p.DecidedAt = s.clock.now()
	return s.publish(t.Context(), p)
}

// RL-10, K11: a panic is nobody's fault, until it happens again to an event while others of its topic pass.
func TestAPanicIsChargedOnlyWhenOthersPass(t *testing.T) {
	t.Parallel()
	poison, other := stored(), stored()
	broken := true
	s := newTestSender(t, publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
		if broken || message.ID == poison.Event.ID {
			panic("password=hunter2\x00")
		}
		return nil
	}))
	want := func(when string, p *core.Publish, class core.Class) {
		t.Helper()
		outcome := publishes(t, s, p)
		says := class == core.Acknowledged || strings.Contains(outcome.Detail, "panicked")
		if outcome.Class != class || !says || strings.Contains(outcome.Detail, "hunter2") {
			t.Errorf("%s: got %+v", when, outcome)
		}
	}
	for range 3 {
		want("all panic", poison, core.Unknown)
		want("all panic", other, core.Unknown)
	}
	broken = false
	ofAnotherTopic := stored()
	ofAnotherTopic.Topic = "another topic"
	want("another topic passes", ofAnotherTopic, core.Acknowledged)
	want("nothing of its topic has passed", poison, core.Unknown)
	want("the other passes", other, core.Acknowledged)
	want("one has passed since it panicked", poison, core.Rejected)
	want("none has passed since then", poison, core.Unknown)
	want("a new one passes", stored(), core.Acknowledged)
	want("one has passed again", poison, core.Rejected)
}

// What is known about events that panicked does not grow without end, and is gone when they have passed.
func TestSuspectsAreForgotten(t *testing.T) {
	t.Parallel()
	s := suspects{most: 3}
	var ids []outbox.ID
	for range 10 {
		ids = append(ids, outbox.NewID())
		s.panicked(ids[len(ids)-1], "topic")
		if len(s.events) > 3 {
			t.Fatalf("%d are known", len(s.events))
		}
	}
	for _, id := range ids {
		s.acknowledged(id, "topic")
	}
	if s.some.Load() || len(s.events)+len(s.acked) > 0 {
		t.Errorf("%d events and %d topics are known still", len(s.events), len(s.acked))
	}
}

// A pipeliner that panics is taken like any other publisher.
func TestAPanicOfAPipeliner(t *testing.T) {
	t.Parallel()
	s := newTestSender(t, &panickingPipeliner{})
	results := make(chan result, 1)
	s.results = results
	for range 2 {
		p := stored()
		p.DecidedAt = s.clock.now()
		if s.enqueue(&panickingPipeliner{}, p) {
			t.Error("what was behind it may go")
		}
		if outcome := (<-results).outcome; outcome.Class != core.Unknown {
			t.Errorf("got %+v", outcome)
		}
	}
}

// panickingPipeliner panics whatever it is handed.
type panickingPipeliner struct{}

func (*panickingPipeliner) Publish(context.Context, *publish.Message) error        { panic("no") }
func (*panickingPipeliner) Enqueue(context.Context, *publish.Message, func(error)) { panic("no") }
func (*panickingPipeliner) Depth() int                                             { return 4 }

// tripping is a payload whose own rule panics.
type tripping struct{ Quoted bool }

// Validate trips.
func (p tripping) Validate() error {
	if p.Quoted {
		panic("the card number is 4111")
	}
	none := []int{}
	return map[int]error{}[none[len("4111")]]
}

// V6: a check that panics has not passed the event. What it says then may quote the payload.
func TestACheckThatPanicsIsABrokenContract(t *testing.T) {
	t.Parallel()
	contract := outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: "orders"}
	registry, err := outbox.NewRegistry(outbox.Define[tripping](contract))
	if err != nil {
		t.Fatal(err)
	}
	s := newTestSender(t, quiet)
	s.config.Registry = registry
	for data, says := range map[string]string{
		`{"Quoted":true}`: "panicked: string", `{}`: "panicked: runtime error: index out of range",
	} {
		outcome := publishes(t, s, stored(func(e *core.Event) {
			e.Payload = []byte(strings.Replace(string(e.Payload), `"data":{}`, `"data":`+data, 1))
		}))
		if outcome.Class != core.Terminal || !outcome.Contract || outcome.Reason != string(outbox.InvalidPayload) ||
			!strings.Contains(outcome.Detail, says) || strings.Contains(outcome.Detail, "4111") {
			t.Errorf("%s: got %+v", says, outcome)
		}
	}
}

// K11: a publisher that is nil inside is invalid at once: it would panic with every event.
func TestANilPublisherIsInvalid(t *testing.T) {
	t.Parallel()
	for says, publisher := range map[string]publish.Publisher{
		"the Publisher is a nil publish.PublisherFunc":     publish.PublisherFunc(nil),
		"the Publisher is a nil *relay.panickingPipeliner": (*panickingPipeliner)(nil),
	} {
		config := complete(t)
		config.Publisher = publisher
		if _, err := New(config); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: got %v", says, err)
		}
	}
}
