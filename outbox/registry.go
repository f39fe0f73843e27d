package outbox

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
)

// A Registry is the closed set of event types that a relay publishes: one type, one topic, one
// aggregate, one payload. It never changes after it was made.
type Registry struct {
	contracts map[string]AnyContract
	topics    map[string]string
}

// NewRegistry makes a registry of these contracts. It reports everything that is wrong at once, as a
// [RegistryError].
func NewRegistry(contracts ...AnyContract) (*Registry, error) {
	registry := &Registry{contracts: map[string]AnyContract{}, topics: map[string]string{}}
	var problems []string
	for i, defined := range contracts {
		if defined == nil {
			problems = append(problems, fmt.Sprintf("contract %d is nil", i))
			continue
		}
		contract := defined.Contract()
		for _, problem := range contract.problems() {
			problems = append(problems, fmt.Sprintf("contract %d (%.40q): %s", i, contract.Type, problem))
		}
		if _, twice := registry.contracts[contract.Type]; twice {
			problems = append(problems, fmt.Sprintf("%.40q is defined twice: a type has exactly one contract", contract.Type))
		}
		registry.contracts[contract.Type] = defined
		registry.topics[contract.Topic] = contract.Topic
	}
	if len(problems) > 0 {
		return nil, &RegistryError{Problems: problems}
	}
	return registry, nil
}

// Covers fails unless the registry's types are exactly the declared ones. Call it at start-up with the
// list of types that the system declares, so that a type added there and forgotten here cannot go
// live.
func (r *Registry) Covers(declared ...string) error {
	var problems []string
	for _, eventType := range declared {
		if _, known := r.contracts[eventType]; !known {
			problems = append(problems, fmt.Sprintf("%.40q is declared and has no contract", eventType))
		}
	}
	for _, eventType := range r.Types() {
		if !slices.Contains(declared, eventType) {
			problems = append(problems, fmt.Sprintf("%.40q has a contract and is not declared", eventType))
		}
	}
	if len(problems) > 0 {
		return &RegistryError{Problems: problems}
	}
	return nil
}

// WithTopics returns the registry with topics renamed as a deployment calls them. Naming a topic that
// no contract has is refused.
func (r *Registry) WithTopics(names map[string]string) (*Registry, error) {
	var problems []string
	topics := maps.Clone(r.topics)
	for _, topic := range slices.Sorted(maps.Keys(names)) {
		if _, known := r.topics[topic]; !known {
			problems = append(problems, fmt.Sprintf("topic %.40q is renamed and no contract has it", topic))
		}
		if names[topic] == "" {
			problems = append(problems, fmt.Sprintf("topic %.40q is renamed to nothing", topic))
		}
		topics[topic] = names[topic]
	}
	if len(problems) > 0 {
		return nil, &RegistryError{Problems: problems}
	}
	return &Registry{contracts: r.contracts, topics: topics}, nil
}

// Types lists the event types, sorted.
func (r *Registry) Types() []string { return slices.Sorted(maps.Keys(r.contracts)) }

// Contract returns the contract of a type, with the topic as this deployment names it.
func (r *Registry) Contract(eventType string) (Contract, bool) {
	defined, known := r.contracts[eventType]
	if !known {
		return Contract{}, false
	}
	contract := defined.Contract()
	contract.Topic = r.topics[contract.Topic]
	return contract, true
}

// Stored is what a registry looks at of a stored event.
type Stored struct {
	ID            ID
	EventType     string
	AggregateType string
	AggregateID   string
	Namespace     string // empty: the default one
	TenantID      string // empty: none
	DedupeKey     string // empty: none
	Payload       []byte
}

// Problem says what is wrong with what is around the payload of a stored event, "" if nothing is. Who writes rows by
// hand may write anything, and what is not text of that kind must not become a message.
func (s *Stored) Problem() string {
	for _, check := range [...]struct{ field, problem string }{
		{"namespace", checkName(cmp.Or(s.Namespace, DefaultNamespace))},
		{"aggregate_id", checkText(s.AggregateID, MaxAggregateIDBytes)},
		{"tenant_id", checkText(s.TenantID, MaxTenantIDBytes)},
		{"dedupe_key", checkText(s.DedupeKey, MaxDedupeKeyBytes)},
		{"dedupe_key", checkKeyOfTenant(s.TenantID, s.DedupeKey)},
	} {
		if check.problem != "" {
			return check.field + ": " + check.problem
		}
	}
	if !s.ID.isVersion7() {
		return "id: not a UUIDv7"
	}
	return ""
}

// Check decodes and validates a stored event and returns its contract. Whatever it refuses, it refuses
// as a [ContractError]. Unknown fields in the data are tolerated, so that an older registry relays what
// a newer producer wrote.
func (r *Registry) Check(stored Stored) (Contract, error) {
	contract, known := r.Contract(stored.EventType)
	switch {
	case !known:
		return Contract{}, &ContractError{Reason: UnknownEventType, Detail: "the registry has no such type"}
	case stored.AggregateType != contract.Aggregate:
		return Contract{}, &ContractError{
			Reason: AggregateMismatch, Detail: "the contract is for aggregate type " + contract.Aggregate,
		}
	case stored.AggregateID == "":
		return Contract{}, &ContractError{Reason: AggregateMismatch, Detail: "the aggregate id is missing"}
	}
	// What this library wrote is taken apart in one step. What that refuses is looked at with all care: it may
	// be a good envelope in another form, and if not its problem must be named.
	if envelope, ours := canonical(stored.Payload); ours && envelope.EventID == stored.ID &&
		r.contracts[stored.EventType].check(envelope.Data) == nil {
		return contract, nil
	}
	envelope, err := DecodeEnvelope(stored.Payload)
	if err != nil {
		return Contract{}, &ContractError{Reason: InvalidPayload, Detail: err.Error()}
	}
	if envelope.EventID != stored.ID {
		return Contract{}, &ContractError{Reason: InvalidPayload, Detail: "the envelope's eventId is not the event's id"}
	}
	if err := r.contracts[stored.EventType].check(envelope.Data); err != nil {
		return Contract{}, &ContractError{Reason: InvalidPayload, Detail: "data: " + err.Error()}
	}
	return contract, nil
}
