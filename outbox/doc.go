// Package outbox writes events in the caller's own transaction.
package outbox
