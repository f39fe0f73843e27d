package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// order is the business change of one transaction, and the data of its event.
type order struct {
	OrderID   outbox.ID `json:"orderId"`
	AccountID string    `json:"accountId"`
	Status    string    `json:"status"`
	Currency  string    `json:"currency"`
	Amount    int64     `json:"amount"`
	Filler    string    `json:"filler"`

	kind int
}

// eventTypes is more than one, as in any system: an index on it has more than one place to insert at.
const eventTypes = 8

var contracts = func() (all []*outbox.ContractFor[order]) {
	for i := range eventTypes {
		all = append(all,
			outbox.Define[order](outbox.Contract{Type: "order_event_" + strconv.Itoa(i), Aggregate: "account", Topic: "orders"}))
	}
	return all
}()

func (w *env) order(client *bench.Client) order {
	return order{
		OrderID:   outbox.NewID(),
		AccountID: w.accountIDs[w.draws[client.Rand.IntN(len(w.draws))]],
		Status:    "placed",
		Currency:  "EUR",
		Amount:    client.Rand.Int64N(100_000),
		Filler:    w.fillers[client.Rand.IntN(len(w.fillers))],
		kind:      client.Rand.IntN(eventTypes),
	}
}

func (o order) event() outbox.Event { return contracts[o.kind].New(o.AccountID, o) }

// keyed is the event with a dedupe key that nobody used. Its place in the index is as random as the
// account's: the costlier case.
func (o order) keyed() outbox.Event {
	event := o.event()
	event.DedupeKey = o.AccountID + "/" + strconv.FormatUint(rand.Uint64(), 16)
	return event
}

// data is the event's data as an application would encode it.
func (o order) data() (string, error) { return encode(o) }

// payload is what an application without an outbox library would store: the same JSON, encoded once.
func (o order) payload() (string, error) {
	return encode(struct {
		Version    int       `json:"version"`
		EventID    outbox.ID `json:"eventId"`
		OccurredAt string    `json:"occurredAt"`
		Data       order     `json:"data"`
	}{1, outbox.NewID(), time.Now().UTC().Format("2006-01-02T15:04:05.000000Z"), o})
}

// encode is encoding/json the way the library uses it, without escapes for HTML.
func encode(value any) (string, error) {
	var to bytes.Buffer
	encoder := json.NewEncoder(&to)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return "", fmt.Errorf("encode: %w", err)
	}
	return strings.TrimSuffix(to.String(), "\n"), nil
}
