package dev

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

const (
	// demoRejected is the type that the demo's broker takes none of, and demoAttempts how often it is tried.
	demoRejected = "invoice_requested"
	demoAttempts = 3
	// demoDown is the topic that goes down and comes back.
	demoDown = "shipment"
)

// demoTypes are the shop's.
var demoTypes = contracts{
	"customer_registered": "customer", "order_created": "order", "payment_captured": "payment",
	demoRejected: "order", "shipment_sent": demoDown, "order_completed": "order",
}

// A pace is how fast the demo goes.
type pace struct {
	gap      time.Duration // between two events of the shop
	up, down time.Duration // the topic is up for so long, then down, and so on
}

func (p pace) withDefaults() pace {
	if p == (pace{}) {
		p = pace{gap: 400 * time.Millisecond, up: 20 * time.Second, down: 20 * time.Second}
	}
	return p
}

// faults are what the demo's broker does wrong.
type faults struct {
	began time.Time
	pace  pace
}

// of is why a message is not taken.
func (f *faults) of(message *publish.Message) error {
	switch {
	case f == nil:
		return nil
	case message.EventType == demoRejected:
		return &publish.RejectedError{Err: errors.New("the invoice service has no address for this customer (demo)")}
	case message.Topic == demoDown && time.Since(f.began)%(f.pace.up+f.pace.down) >= f.pace.up:
		return &publish.TopicError{Err: errors.New("the warehouse does not answer (demo)")}
	}
	return nil
}

// shop emits the events of a small shop until the context ends. Where the database is away it tries again.
func shop(ctx context.Context, pool *pgxpool.Pool, schema string, gap time.Duration, bell *outbox.Doorbell) {
	step := shopSteps(time.Now().Unix())
	for event := step(); ; {
		err := bell.After(outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
			_, err := outbox.Emit(ctx, outbox.InSchema(tx, schema), event)
			return err
		}))
		if err == nil {
			event = step()
		}
		if wait.For(ctx, gap) != nil {
			return
		}
	}
}

// shopSteps makes one event after the other: an order is created, paid, shipped and completed, some want an invoice.
func shopSteps(first int64) func() outbox.Event {
	type object map[string]any
	var todo []outbox.Event
	number := first
	return func() outbox.Event {
		if len(todo) == 0 {
			number++
			id, total := strconv.FormatInt(number, 10), float64(number*37%9000+500)/100
			customer := fmt.Sprintf("c%d", number%12)
			if number%5 == 0 {
				todo = append(todo, demoEvent("customer_registered", customer, object{"name": "Customer " + customer}))
			}
			todo = append(todo, demoEvent("order_created", id, object{"customer": customer, "total": total}),
				demoEvent("payment_captured", id, object{"order": id, "amount": total, "method": "card"}))
			if number%4 == 0 {
				todo = append(todo, demoEvent(demoRejected, id, object{"order": id, "customer": customer}))
			}
			todo = append(todo, demoEvent("shipment_sent", id, object{"order": id, "parcels": 1 + number%3}),
				demoEvent("order_completed", id, object{"total": total}))
		}
		event := todo[0]
		todo = todo[1:]
		return event
	}
}

func demoEvent(eventType, id string, data map[string]any) outbox.Event {
	encoded, err := json.Marshal(data)
	if err != nil {
		panic("dev: the demo's own data: " + err.Error())
	}
	return outbox.Define[json.RawMessage](outbox.Contract{
		Type: eventType, Aggregate: demoTypes[eventType], Topic: demoTypes[eventType],
	}).New(id, encoded)
}
