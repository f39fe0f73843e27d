package outbox_test

import (
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

// A payload is a plain struct; Validate, where there is one, runs before the event is emitted and
// before it is published.
type OrderCreatedV1 struct {
	OrderID    string `json:"orderId"`
	TotalCents int64  `json:"totalCents"`
}

func (o OrderCreatedV1) Validate() error {
	if o.TotalCents < 0 {
		return errors.New("totalCents must not be negative")
	}
	return nil
}

var OrderCreated = outbox.Define[OrderCreatedV1](outbox.Contract{
	Type: "order_created", Version: 1, Aggregate: "vendor_order", Topic: "domain",
})

// The event is written in the transaction of the business change: both commit, or neither.
func ExampleEmitSQL() {
	placeOrder := func(ctx context.Context, db *sql.DB, orderID string, totalCents int64) error {
		tx, err := db.BeginTx(ctx, nil)
		if err != nil {
			return err
		}
		defer func() { _ = tx.Rollback() }()
		if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id, total_cents) VALUES ($1, $2)", orderID, totalCents); err !=
			nil {
			return err
		}
		event := OrderCreated.New(orderID, OrderCreatedV1{OrderID: orderID, TotalCents: totalCents})
		event.DedupeKey = "order-created/" + orderID // a retried request stays one event
		event.Actor = &outbox.Actor{Type: "user", ID: "u-7"}
		if _, err := outbox.EmitSQL(ctx, tx, event); err != nil {
			return err
		}
		return tx.Commit()
	}
	_ = placeOrder
}

// InTxSQL begins, runs and commits; an emit that was refused rolls back even when its error is dropped.
func ExampleInTxSQL() {
	placeOrder := func(ctx context.Context, db *sql.DB, orderID string) error {
		return outbox.InTxSQL(ctx, db, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO orders (id) VALUES ($1)", orderID); err != nil {
				return err
			}
			_, err := outbox.EmitSQL(ctx, tx, OrderCreated.New(orderID, OrderCreatedV1{OrderID: orderID}))
			return err
		})
	}
	_ = placeOrder
}

// What cannot be stored or published is refused before anything is sent, with every problem at once.
func ExampleStatement_invalid() {
	event := OrderCreated.New(strings.Repeat("x", 600), OrderCreatedV1{TotalCents: -1})
	event.TenantID, event.DedupeKey = "acme", "globex/1"
	_, err := outbox.Statement("", event)
	fmt.Println(err)
	fmt.Println("refused:", errors.Is(err, outbox.ErrRefused))
	// Output:
	// outbox: event 0 (order_created): aggregate_id: 600 bytes, the limit is 512
	// outbox: event 0 (order_created): dedupe_key: must begin with the tenant id and '/'
	// outbox: event 0 (order_created): data: the contract's validation failed: totalCents must not be negative
	// refused: true
}

// Statement is for drivers and batches that Emit does not know: one statement, one text as its answer.
func ExampleStatement() {
	stmt, err := outbox.Statement("billing", OrderCreated.New("o-1", OrderCreatedV1{OrderID: "o-1"}))
	if err != nil {
		panic(err)
	}
	fmt.Println(strings.Split(stmt.SQL, "(")[0], len(stmt.Args), "arguments")
	// Output: INSERT INTO "billing".outbox_events  8 arguments
}

// A registry is closed: what it does not list is not published.
func ExampleNewRegistry() {
	registry, err := outbox.NewRegistry(OrderCreated)
	if err != nil {
		panic(err)
	}
	if err := registry.Covers("order_created"); err != nil { // fails when a declared type was forgotten
		panic(err)
	}
	contract, known := registry.Contract("order_created")
	fmt.Println(contract.Topic, contract.Aggregate, known)
	// Output: domain vendor_order true
}

// A consumer decodes with the same value that the producer emitted with.
func ExampleContractFor_Decode() {
	body := []byte(`{"version":1,"eventId":"018f2f6e-1b2c-7d3e-8f40-123456789abc","occurredAt":"2026-01-02T03:04:05Z",` +
		`"data":{"orderId":"o-1","totalCents":1250}}`)
	order, envelope, err := OrderCreated.Decode(body)
	fmt.Println(order.OrderID, order.TotalCents, envelope.EventID, err)
	// Output: o-1 1250 018f2f6e-1b2c-7d3e-8f40-123456789abc <nil>
}

// A contract may bring a validator of its own, for instance one that knows JSON Schema.
func ExampleDefine_validator() {
	refund := outbox.Define[json.RawMessage](outbox.Contract{
		Type: "refund_issued", Aggregate: "payment", Topic: "billing",
		Validate: func(data json.RawMessage) error {
			var refund struct{ Cents *int64 }
			if err := json.Unmarshal(data, &refund); err != nil || refund.Cents == nil {
				return errors.New("cents is required")
			}
			return nil
		},
	})
	_, err := outbox.Statement("", refund.New("p-1", json.RawMessage(`{}`)))
	fmt.Println(err)
	// Output: outbox: event 0 (refund_issued): data: the contract's validation failed: cents is required
}
