// Package otel traces events by OpenTelemetry's conventions for messaging: a span "create" when an event is emitted,
// whose context travels with the event as the headers traceparent and tracestate, a span "send" for every attempt to
// publish it, and a span "process" for every run of a consumer's handler, as children of that one and linked to it.
//
// Spans have names, ids of events and sizes. They have no payloads, no headers, no ids of aggregates, tenants or
// actors, and no texts of errors: any of these may be somebody's personal data.
//
// The package needs OpenTelemetry's API alone. Where spans go, and which, is the business of the program that sets
// up the SDK; without one nothing is traced and nothing is added to events.
package otel
