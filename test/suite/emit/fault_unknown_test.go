package emit

import (
	"fmt"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// roundsPerCut is how often a connection is cut at each place.
const roundsPerCut = 4

func TestFaultA2UnknownOutcome(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		if err := p.attempt(t, proxy.None, "whole", corpus.OrderCreated(`{}`)); err != nil || !p.resolve(t, "whole") {
			t.Fatalf("the proxy gets in the way: %v", err)
		}
		for _, at := range []proxy.Fault{proxy.LoseRequest, proxy.HangUp, proxy.LoseAnswer} {
			for round := range roundsPerCut {
				order := fmt.Sprintf("%s %d", at, round)
				event := corpus.OrderCreated(`{}`)
				event.AggregateID = order
				err := p.attempt(t, at, order, event)
				if !lostConnection(err) || outbox.Retryable(err) {
					t.Fatalf("%s: want a lost connection, got %v", order, err)
				}
				committed := p.resolve(t, order)
				if at == proxy.LoseRequest && committed || at == proxy.LoseAnswer && !committed {
					t.Errorf("%s: committed=%v", order, committed)
				}
				events := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE aggregate_id = $1", order)
				if (events == 1) != committed {
					t.Errorf("%s: committed=%v and %d events", order, committed, events)
				}
			}
		}
	})
}

// The application does not know, so it runs the whole transaction again.
func TestFaultA3RetryOfTheWholeTransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, at := range []proxy.Fault{proxy.LoseRequest, proxy.HangUp, proxy.LoseAnswer} {
			for round := range roundsPerCut {
				p.retry(t, at, fmt.Sprintf("%s %d", at, round))
			}
		}
	})
}

// retry has three arms: with a key and the application's own id, with a key, and without: that one is
// documented to emit twice.
func (p env) retry(t *testing.T, at proxy.Fault, order string) {
	t.Helper()
	for arm, event := range map[string]corpus.Given{
		"without key": corpus.OrderCreated(`{}`), "with key": corpus.OrderCreated(`{}`).WithKey(order),
		"with key and id": corpus.OrderCreated(`{}`).WithKey(order + " own id"),
	} {
		event.AggregateID = order + " " + arm
		if arm == "with key and id" {
			event.ID = outbox.NewID()
		}
		if err := p.attempt(t, at, event.AggregateID, event); !lostConnection(err) {
			t.Fatalf("%s: want a lost connection, got %v", event.AggregateID, err)
		}
		want := 1
		if event.Key == "" && p.resolve(t, event.AggregateID) {
			want = 2
		}
		if err := p.attempt(t, proxy.None, event.AggregateID, event); err != nil {
			t.Fatalf("%s: retry: %v", event.AggregateID, err)
		}
		if got := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE aggregate_id = $1",
			event.AggregateID); got != want {
			t.Errorf("%s: %d events, want %d", event.AggregateID, got, want)
		}
	}
}
