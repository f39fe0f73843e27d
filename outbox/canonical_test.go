package outbox_test

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Envelopes that begin like those this library writes and then go another way: what the registry says of
// them must not depend on the way it takes them apart.
func TestRegistryTakesEveryFormOfAnEnvelope(t *testing.T) {
	t.Parallel()
	type payload struct {
		Amount int `json:"amount"`
	}
	contract := outbox.Define[payload](outbox.Contract{Type: "paid", Aggregate: "order", Topic: "orders"})
	registry, err := outbox.NewRegistry(contract)
	if err != nil {
		t.Fatal(err)
	}
	id := outbox.NewID()
	head := `{"version":1,"eventId":"` + id.String() + `","occurredAt":"2026-01-02T03:04:05.000006Z",`
	for name, c := range map[string]struct {
		document string
		accepted bool
	}{
		"as written":                {head + `"data":{"amount":1}}`, true},
		"an actor behind the data":  {head + `"data":{"amount":1},"actor":{"type":"user","id":"7"}}`, true},
		"an actor before the data":  {head + `"actor":{"type":"user","id":"7"},"data":{"amount":1}}`, true},
		"blanks":                    {strings.ReplaceAll(head, ",", ", ") + ` "data": {"amount": 1} }`, true},
		"two documents in the data": {head + `"data":{"amount":1}{}}`, false},
		"data of another type":      {head + `"data":{"amount":"one"}}`, false},
		"data cut short":            {head + `"data":{"amount":}}`, false},
		"no data":                   {strings.TrimSuffix(head, ",") + `}`, false},
		"a null":                    {head + `"data":null}`, false},
		"a list":                    {head + `"data":[{}]}`, false},
		"a number that is a bomb":   {head + `"data":{"amount":1,"x":1e999999}}`, false},
		"another event's id": {
			strings.Replace(head, id.String(), outbox.NewID().String(), 1) + `"data":{"amount":1}}`, false,
		},
		"a version of zero":     {strings.Replace(head, `"version":1`, `"version":0`, 1) + `"data":{"amount":1}}`, false},
		"half a surrogate pair": {head + `"data":{"amount":1,"x":"\ud800"}}`, false},
		"a NUL":                 {head + `"data":{"amount":1,"x":"\u0000"}}`, false},
		"a time that is none":   {strings.Replace(head, "2026-01-02", "2026-13-02", 1) + `"data":{"amount":1}}`, false},
		"braces in a text":      {head + `"data":{"amount":1,"x":"}}"}}`, true},
		"a second data":         {head + `"data":{"amount":"x"},"data":{"amount":1}}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := registry.Check(outbox.Stored{
				ID: id, EventType: "paid", AggregateType: "order", AggregateID: "1", Payload: []byte(c.document),
			})
			if (err == nil) != c.accepted {
				t.Errorf("%s: %v", c.document, err)
			}
		})
	}
}
