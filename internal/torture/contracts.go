package torture

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Failure is how the proof's publisher fails an event, again and again, until the event is cured.
type Failure string

// The failures. An event without one fails now and then, and passes.
const (
	Terminal Failure = "terminal" // refused for good
	Stubborn Failure = "stubborn" // refused for now, every time
)

// Body is the data of every event.
type Body struct {
	Version uint64  `json:"version"`
	Failure Failure `json:"failure,omitempty"`
	Filler  string  `json:"filler,omitempty"`
}

const aggregateType = "thing"

// contracts are the two kinds of events of a run: one whose dead events block their aggregate, and one
// whose do not. They go to topics of their own, so an aggregate has two independent orders.
type contracts struct {
	blocking, skipping *outbox.ContractFor[Body]
}

// attemptsOfSkipping is low, so that some events end their retries in the time of a run.
const attemptsOfSkipping = 3

// newContracts makes the contracts of a run, whose topics begin with its name.
func newContracts(run string) contracts {
	return contracts{
		blocking: outbox.Define[Body](outbox.Contract{
			Type: "thing_changed", Aggregate: aggregateType, Topic: run + ".changed", OnDead: outbox.OnDeadBlock,
			MaxAttempts: 2 * attemptsOfSkipping,
		}),
		skipping: outbox.Define[Body](outbox.Contract{
			Type: "thing_noted", Aggregate: aggregateType, Topic: run + ".noted", OnDead: outbox.OnDeadSkip,
			MaxAttempts: attemptsOfSkipping,
		}),
	}
}

func (c contracts) registry() (*outbox.Registry, error) {
	return outbox.NewRegistry(c.blocking, c.skipping)
}

func (c contracts) topics() []string {
	return []string{c.blocking.Contract().Topic, c.skipping.Contract().Topic}
}

// payload is the envelope as consumers know it, put together here and not by the library under test.
func payload(id outbox.ID, occurredAt time.Time, body Body) ([]byte, error) {
	data, err := json.Marshal(body)
	if err != nil {
		return nil, fmt.Errorf("torture: encode a body: %w", err)
	}
	return fmt.Appendf(nil, `{"version":1,"eventId":"%s","occurredAt":"%s","data":%s}`,
		id, occurredAt.UTC().Format("2006-01-02T15:04:05.000000Z"), data), nil
}
