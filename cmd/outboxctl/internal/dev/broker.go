package dev

import (
	"context"
	"encoding/json"
	"errors"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// Delivered is an event that arrived at the broker.
type Delivered struct {
	At        time.Time       `json:"at"`
	Topic     string          `json:"topic"`
	Type      string          `json:"type"`
	Aggregate string          `json:"aggregate"` // type/id
	Namespace string          `json:"namespace,omitempty"`
	Tenant    string          `json:"tenant,omitempty"`
	ID        outbox.ID       `json:"id"`
	Data      json.RawMessage `json:"data"`
	// LatencyMillis is since the beginning of the transaction that wrote it.
	LatencyMillis float64 `json:"latencyMs"`
	// Redelivered tells that it may have been here before.
	Redelivered bool `json:"redelivered,omitempty"`
}

// broker is where events arrive: a function is told.
type broker struct {
	mutex  sync.Mutex
	report func(Delivered) error
	fail   func(error) // ends the run
	count  int
	faults *faults // nil: none
}

// Publish tells of one event.
func (b *broker) Publish(_ context.Context, message *publish.Message) error {
	if err := b.faults.of(message); err != nil {
		return err
	}
	envelope, err := outbox.DecodeEnvelope(message.Body)
	if err != nil {
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New("its body is no envelope")}
	}
	b.mutex.Lock()
	defer b.mutex.Unlock()
	now := time.Now()
	if err := b.report(Delivered{
		At: now, Topic: message.Topic, Type: message.EventType, Aggregate: message.AggregateType + "/" + message.AggregateID,
		Namespace: message.Attributes["namespace"], Tenant: message.Attributes["tenant_id"], ID: message.ID,
		Data: envelope.Data, Redelivered: message.Redelivered,
		// The database's clock may be ahead of ours.
		LatencyMillis: max(0, float64(now.Sub(message.CreatedAt).Microseconds())/1000),
	}); err != nil {
		b.fail(err) // nobody can see it: that is not the event's fault
		return publish.ErrNotSent
	}
	b.count++
	return nil
}

func (b *broker) delivered() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.count
}
