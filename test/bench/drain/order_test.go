package drain

import (
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Both registries must take every event, and the schema must look at it.
func TestRegistriesCheckTheEvents(t *testing.T) {
	t.Parallel()
	event := newDraws(0).event()
	statement, err := outbox.Statement("", event)
	if err != nil {
		t.Fatal(err)
	}
	payload := statement.Args[6].(string)
	if len(payload) < 450 || len(payload) > 550 {
		t.Errorf("%d bytes, and the documentation says about 500", len(payload))
	}
	envelope, err := outbox.DecodeEnvelope([]byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	stored := outbox.Stored{
		ID: envelope.EventID, EventType: "order_event_1", AggregateType: aggregate, AggregateID: event.AggregateID,
		Payload: []byte(payload),
	}
	foreign := stored
	foreign.Payload = []byte(`{"version":1,"eventId":"` + envelope.EventID.String() +
		`","occurredAt":"2026-01-01T00:00:00Z","data":{"status":"unheard of"}}`)
	for _, jsonSchema := range []bool{false, true} {
		registry, err := Registry("elsewhere", jsonSchema)
		if err != nil {
			t.Fatal(err)
		}
		contract, err := registry.Check(stored)
		if err != nil || contract.Topic != "elsewhere" {
			t.Errorf("%+v, %v", contract, err)
		}
		if _, err := registry.Check(foreign); (err != nil) != jsonSchema {
			t.Errorf("schema %t: %v", jsonSchema, err)
		}
	}
}
