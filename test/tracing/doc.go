// Package tracing tests the spans of events on their way through a real outbox and a real relay.
package tracing
