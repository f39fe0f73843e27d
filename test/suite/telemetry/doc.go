// Package telemetry tests that the metrics of a relay say the truth, that the page, the dashboard and the alert rules
// speak of metrics that a running relay has, and the spans of events on their way through a real outbox and a real
// relay.
package telemetry
