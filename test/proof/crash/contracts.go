package crash

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// disposition is what the proof's publisher does with an event.
type disposition string

const (
	fine     disposition = ""
	slow     disposition = "slow"     // refused for now, twice by each relay
	stubborn disposition = "stubborn" // refused for now, until it is cured
	terminal disposition = "terminal" // refused for good, until it is cured
	poison   disposition = "poison"   // kills the process that publishes it, until it is cured
)

// body is the data of every event.
type body struct {
	Version     uint64      `json:"version"`
	Disposition disposition `json:"fate,omitempty"`
}

const aggregateType = "thing"

// contracts are the kinds of events of a trial. A dead changed event blocks its aggregate, a dead noted one
// does not. Renamed is of a newer application: some relays do not know it.
type contracts struct {
	changed, annotated, renamed *outbox.ContractFor[body]
}

// attemptsOfAnnotated is low, so that a stubborn event dies soon.
const attemptsOfAnnotated = 3

func newContracts(run string) contracts {
	define := func(name, topic string, onDead outbox.OnDead, attempts int) *outbox.ContractFor[body] {
		return outbox.Define[body](outbox.Contract{
			Type: name, Aggregate: aggregateType, Topic: run + topic, OnDead: onDead, MaxAttempts: attempts,
		})
	}
	return contracts{
		changed:   define("thing_changed", ".changed", outbox.OnDeadBlock, 20),
		annotated: define("thing_noted", ".noted", outbox.OnDeadSkip, attemptsOfAnnotated),
		renamed:   define("thing_renamed", ".changed", outbox.OnDeadBlock, 20),
	}
}

// registry is what an old relay knows, or a new one.
func (c contracts) registry(old bool) (*outbox.Registry, error) {
	if old {
		return outbox.NewRegistry(c.changed, c.annotated)
	}
	return outbox.NewRegistry(c.changed, c.annotated, c.renamed)
}

// payload is the envelope as consumers know it, put together here and not by the library under test.
func payload(id outbox.ID, occurredAt time.Time, b body) ([]byte, error) {
	data, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("crash: encode a body: %w", err)
	}
	return fmt.Appendf(nil, `{"version":1,"eventId":"%s","occurredAt":"%s","data":%s}`,
		id, occurredAt.UTC().Format("2006-01-02T15:04:05.000000Z"), data), nil
}
