// Package outbox writes events in the caller's own database transaction.
//
// A contract says what an event type is: its name, its aggregate, its topic and its payload type. It
// is a Go value, shared by whoever emits the event, relays it, consumes it or tests for it:
//
//	var OrderCreated = outbox.Define[OrderCreatedV1](outbox.Contract{
//		Type: "order_created", Version: 1, Aggregate: "vendor_order", Topic: "domain",
//	})
//
//	_, err := outbox.Emit(ctx, tx, OrderCreated.New(order.ID, OrderCreatedV1{Total: order.Total}))
//
// The event exists if and only if tx commits. [Emit] takes a pgx transaction, [EmitSQL] one of
// database/sql (also in the hands of sqlx or bun), [EmitGORM] the pool of a GORM transaction; a pool or
// a plain connection does not compile. Programs in other languages call the SQL function
// outbox_emit.
//
// # What is promised
//
// Emit sends one statement, whatever the number of events, and takes no connection of its own.
// Whatever can be refused is refused before that statement, so a refusal ([ErrRefused]) leaves the
// transaction as it was: it can still commit. The stored payload is an [Envelope] whose data is byte
// for byte what the contract's payload encodes to.
//
// # What is not
//
// Emitting does not publish: a relay does, after the commit. Without a dedupe key a retried
// transaction is a second event. The package imports nothing but the standard library.
package outbox
