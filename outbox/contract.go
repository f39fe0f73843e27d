package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
)

// DefaultNamespace is the namespace of events whose contract names none.
const DefaultNamespace = "default"

// A Contract says what an event type is. [Define] ties it to the Go type of its payload.
type Contract struct {
	// Type is the event type, for instance "order_created". Letters, digits, '.', '_' and '-'.
	Type string
	// Version is the version of the payload, written into every envelope. Adding a field keeps it; a
	// breaking change is a new type. Defaults to 1.
	Version int
	// Aggregate is the type of the thing that the event is about, for instance "vendor_order".
	Aggregate string
	// Topic is where the relay publishes the event.
	Topic string
	// Namespace groups the events of one module, so that several share one table. Defaults to "default".
	Namespace string
	// MaxBytes is the limit of the stored payload. Defaults to [MaxPayloadBytes], at most [MaxContractBytes].
	MaxBytes int
	// RequireTenant refuses events without a tenant id. Defaults to false.
	RequireTenant bool
	// FirstWins takes an event with a used dedupe key for already enqueued even when its content
	// differs. Defaults to false: other content under a used key is refused.
	FirstWins bool
	// OnDead says whether later events of the aggregate on the same topic go on without one that died, or wait
	// behind it. Defaults to [OnDeadSkip].
	OnDead OnDead
	// MaxAttempts is how often an event may fail by its own fault before it is dead. Outages of the
	// broker do not count. Defaults to 0: the relay's own limit.
	MaxAttempts int
	// Validate checks the payload's data, after the Go type did. It must not keep the bytes. Errors must
	// not quote the data. Defaults to none.
	Validate func(data json.RawMessage) error
}

// OnDead says what a dead event means for the later ones of its aggregate on the same topic. It is
// decided when the event dies: a later change of the contract leaves those that are dead as they are.
type OnDead uint8

const (
	// OnDeadSkip lets the later ones go on without it: nobody has to act for the aggregate to make progress.
	OnDeadSkip OnDead = iota
	// OnDeadBlock lets the later ones wait, in order, until somebody redrives, skips or discards the dead one. It is for
	// aggregates in which a hole is worse than a stop.
	OnDeadBlock
)

// withDefaults fills in what the contract leaves out.
func (c Contract) withDefaults() Contract {
	if c.Version == 0 {
		c.Version = 1
	}
	if c.Namespace == "" {
		c.Namespace = DefaultNamespace
	}
	if c.MaxBytes == 0 {
		c.MaxBytes = MaxPayloadBytes
	}
	return c
}

// problems lists what is wrong with the contract itself.
func (c Contract) problems() []string {
	var problems []string
	for _, name := range []struct{ field, value string }{
		{"Type", c.Type}, {"Aggregate", c.Aggregate}, {"Namespace", c.Namespace},
	} {
		if problem := checkName(name.value); problem != "" {
			problems = append(problems, name.field+": "+problem)
		}
	}
	if c.Topic == "" {
		problems = append(problems, "Topic: missing")
	}
	if c.Version < 1 || c.Version > math.MaxInt32 { // outbox_emit has it as an integer, and so have other languages
		problems = append(problems, fmt.Sprintf("Version: not between 1 and %d", math.MaxInt32))
	}
	if c.MaxBytes < 0 || c.MaxBytes > MaxContractBytes {
		problems = append(problems, fmt.Sprintf("MaxBytes: %d, must be between 1 and %d", c.MaxBytes, MaxContractBytes))
	}
	if c.OnDead > OnDeadBlock {
		problems = append(problems, fmt.Sprintf("OnDead: %d, must be OnDeadSkip or OnDeadBlock", c.OnDead))
	}
	if c.MaxAttempts < 0 || c.MaxAttempts > math.MaxInt32 { // the attempts are counted in an integer column
		problems = append(problems, fmt.Sprintf("MaxAttempts: %d, must be between 0 and %d", c.MaxAttempts, math.MaxInt32))
	}
	return problems
}

// A ContractFor is a contract whose payload is a P. Make one with [Define].
type ContractFor[P any] struct {
	contract Contract
}

// AnyContract is a [ContractFor] of any payload.
type AnyContract interface {
	// Contract returns the contract with its defaults filled in.
	Contract() Contract
	// check decodes and validates the data of one event.
	check(data json.RawMessage) error
}

// Define ties a contract to the Go type of its payload. The payload must encode to a JSON object;
// where P has a method Validate() error it is called before an event is emitted and before it is
// published. Use json.RawMessage as P for payloads that are JSON already. What is wrong with a
// contract is reported by [NewRegistry] and by [Emit].
func Define[P any](contract Contract) *ContractFor[P] {
	return &ContractFor[P]{contract: contract.withDefaults()}
}

// Contract returns the contract with its defaults filled in.
func (c *ContractFor[P]) Contract() Contract { return c.contract }

// New makes an event of the aggregate with this id. The payload is encoded at once; what is wrong with
// it is reported by [Emit].
func (c *ContractFor[P]) New(aggregateID string, payload P) Event {
	event := Event{AggregateID: aggregateID, contract: c.contract}
	event.data, event.problem = encode(payload)
	if event.problem == "" {
		event.problem = checkData(event.data)
	}
	if event.problem == "" {
		if err := c.validate(payload, event.data); err != nil {
			event.problem = "the contract's validation failed: " + err.Error()
		}
	}
	return event
}

// Decode reads a stored payload or message body of this contract.
func (c *ContractFor[P]) Decode(payload []byte) (P, Envelope, error) {
	var data P
	envelope, err := DecodeEnvelope(payload)
	if err != nil {
		return data, Envelope{}, err
	}
	if err := json.Unmarshal(envelope.Data, &data); err != nil {
		return data, Envelope{}, fmt.Errorf("outbox: %s: data: %s", c.contract.Type, decodeProblem(err))
	}
	return data, envelope, nil
}

func (c *ContractFor[P]) check(data json.RawMessage) error {
	var payload P
	if err := json.Unmarshal(data, &payload); err != nil {
		if problem := checkData(data); problem != "" {
			return errors.New(problem)
		}
		return errors.New(decodeProblem(err))
	}
	if problem := checkValid(data); problem != "" {
		return errors.New(problem)
	}
	return c.validate(payload, data)
}

func (c *ContractFor[P]) validate(payload P, data json.RawMessage) error {
	if own, ok := any(payload).(interface{ Validate() error }); ok {
		if err := own.Validate(); err != nil {
			return err
		}
	} else if own, ok := any(&payload).(interface{ Validate() error }); ok {
		if err := own.Validate(); err != nil {
			return err
		}
	}
	if c.contract.Validate != nil {
		return c.contract.Validate(data)
	}
	return nil
}
