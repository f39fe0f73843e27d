// Package metrics tests that the metrics of a relay say the truth, and that the page, the dashboard and the alert rules
// speak of metrics that a running relay has.
package metrics
