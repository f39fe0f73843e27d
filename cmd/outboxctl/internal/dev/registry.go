package dev

import (
	"encoding/json"
	"maps"
	"slices"

	"github.com/posthaste-dev/posthaste/outbox"
)

// contracts are the event types that were met so far, and the aggregate type of each. A relay's registry never changes
// while it runs, so a new type needs a new relay.
type contracts map[string]string

// learn adds a type, and tells whether it is new. A type has one aggregate type, as in every registry: an event of
// another one breaks the contract and is dead, which a developer should see.
func (c contracts) learn(eventType, aggregateType string) bool {
	if _, known := c[eventType]; known {
		return false
	}
	c[eventType] = aggregateType
	return true
}

// registry makes a contract of each type: any JSON object keeps it, and its topic is named after the aggregate type.
func (c contracts) registry() (*outbox.Registry, error) {
	var all []outbox.AnyContract
	for _, eventType := range slices.Sorted(maps.Keys(c)) {
		contract := outbox.Contract{
			Type: eventType, Aggregate: c[eventType], Topic: c[eventType], MaxBytes: outbox.MaxContractBytes,
		}
		if eventType == demoRejected {
			contract.MaxAttempts = demoAttempts
		}
		all = append(all, outbox.Define[json.RawMessage](contract))
	}
	return outbox.NewRegistry(all...)
}
