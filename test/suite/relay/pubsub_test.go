package relay

import (
	"fmt"
	"testing"

	"github.com/posthaste-dev/posthaste/broker/googlepubsub"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubtest"
)

// fewAttempts would kill an event within a second, were it charged.
func fewAttempts(s *relay.Settings) { s.MaxAttempts = 3 }

// toPubSub is a relay's publisher to an emulator of Google's service, which fails as it is told to.
func toPubSub(t *testing.T) (*pubsubemulator.Server, func(*relay.Config)) {
	t.Helper()
	server, client := pubsubtest.Start(t, "orders", "bills")
	publisher, err := googlepubsub.NewPublisher(client, googlepubsub.PublisherConfig{Timeout: eventually.Patience})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = publisher.Close() })
	return server, func(config *relay.Config) { config.Publisher = publisher }
}

// fails tells the emulator how to fail, and returns a count of the calls that it has failed.
func fails(t *testing.T, server *pubsubemulator.Server, fault pubsubemulator.Fault) func() int {
	t.Helper()
	if err := server.Inject(fault); err != nil {
		t.Fatal(err)
	}
	nth := len(server.Faults()) - 1
	return func() int { return server.Faults()[nth].Fired }
}

// P8: a schema that is attached to a topic by mistake refuses every message. It costs no event its life.
func TestATopicOfPubSubThatRejectsAllKillsNoEvent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const aggregates = 12
		server, publisher := toPubSub(t)
		failed := fails(t, server, pubsubemulator.Fault{
			Kind: pubsubemulator.KindError, Code: "INVALID_ARGUMENT", Topic: "projects/p/topics/orders",
		})
		p.start(t, "a", publisher, with(fewAttempts))
		for i := range aggregates {
			p.emit(t, placed.New(fmt.Sprint(i), note{N: 1}), placed.New(fmt.Sprint(i), note{N: 2}))
			p.emit(t, billed.New(fmt.Sprint(i), note{N: 3}))
		}
		eventually.True(t, "those of the other topic", func() bool { return p.inState(t, published) == aggregates })
		eventually.True(t, "many refusals", func() bool { return failed() > 3*aggregates })
		if dead, charged := p.inState(t, deadBlocking)+p.inState(t, dead), p.chargedEvents(t); dead > 0 || charged > 2 {
			t.Errorf("%d events are dead and %d are charged", dead, charged)
		}
		server.ClearFaults()
		p.awaitPublished(t, 3*aggregates)
	})
}

// P8: servers of Pub/Sub that have some of the keys are in trouble while all others work. That is no fault of those
// keys' events, however often they are tried.
func TestASickKeyOfPubSubKillsNoEvent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const tries = 2 // with each code; three of all would be enough to die
		server, publisher := toPubSub(t)
		codes := []string{"DEADLINE_EXCEEDED", "INTERNAL", "ABORTED", "UNKNOWN", "CANCELLED"}
		var failed []func() int
		for _, code := range codes {
			failed = append(failed, fails(t, server, pubsubemulator.Fault{
				Kind: pubsubemulator.KindError, Code: code, Key: "default/order/sick", Count: tries,
			}))
		}
		p.start(t, "a", publisher, with(fewAttempts))
		sick := p.emit(t, placed.New("sick", note{N: 1}))[0]
		emitted := 1
		eventually.True(t, "the key was in trouble for long, and others passed", func() bool {
			p.emit(t, placed.New(fmt.Sprint(emitted), note{N: 1}))
			emitted++
			return failed[len(failed)-1]() == tries
		})
		p.awaitPublished(t, emitted)
		if r := p.row(t, sick); r.attempts != 0 {
			t.Errorf("it was charged %d times", r.attempts)
		}
	})
}
