// Package operator tests what people see of an outbox, on real PostgreSQL servers and with relays that run: where an
// event stands, why it waits, and what outboxctl says about it.
package operator
