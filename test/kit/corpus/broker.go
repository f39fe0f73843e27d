package corpus

import (
	"strings"
	"time"
)

// brokerInputs are names that a broker keeps for itself, and values that mean something to one.
func brokerInputs() []Input {
	inputs := []Input{
		stored("header name with points", header("a.b.c", "v")),
		stored("Content-Type", header("Content-Type", "text/html")),
		stored("traceparent", header("traceparent", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01")),
		rejected("header name with a colon", "headers", header("a:b", Canary)),
		rejected("header name with a space", "headers", header("a b", Canary)),
		rejected("header name with an equals sign", "headers", header("a=b", Canary)),
		rejected("header name that is empty", "headers", header("", Canary)),
		rejected("header name in Greek", "headers", header("κλειδί", Canary)),
		rejected("header name of 256 bytes", "headers", header(strings.Repeat("n", 256), Canary), "256", "128"),
		stored("header value that is empty", header("h", "")),
		stored("header value of 256 bytes", header("h", strings.Repeat("v", 256))),
		stored("header value in Greek", header("h", "τιμή")),
		stored("header value of 1,024 bytes in Greek", header("h", strings.Repeat("τ", 512))),
		rejected("header value of 1,026 bytes in Greek", "headers", header("h", strings.Repeat("τ", 513)), "1026", "1024"),
		stored("header value with spaces at the ends", header("h", "  v  ")),
		stored("two headers that differ by case", func(g *Given) { g.Headers = map[string]string{"h": "1", "H": "2"} }),
		stored("empty set of headers", func(g *Given) {
			g.Headers = map[string]string{}
		}).sqlMay("an empty object is stored as it is"),
		stored("aggregate id that is a NATS wildcard", aggregateID("*")),
		stored("aggregate id that is NATS's full wildcard", aggregateID("orders.>")),
		stored("aggregate id with points and spaces", aggregateID("a.b c..d.")),
		stored("aggregate id of 255 bytes", aggregateID(strings.Repeat("r", 255))),
		stored("aggregate id of 256 bytes", aggregateID(strings.Repeat("r", 256))),
		rejected("aggregate id with a tab", "aggregate_id", aggregateID(Canary+"\t")),
		rejected("aggregate id that would be Kafka's null key", "aggregate_id", aggregateID("")),
		rejected("type that is a NATS wildcard", "contract", eventType("*")),
		rejected("type that is NATS's full wildcard", "contract", eventType("orders.>")),
		rejected("type that is an AMQP pattern", "contract", eventType("orders.#")),
		stored("aggregate id that is an AMQP pattern", aggregateID("orders.#")),
	}
	for _, reserved := range []string{
		"event_id", "event_type", "namespace", "aggregate_type", "aggregate_id", "created_at", "tenant_id", "dedupe_key",
		"outbox_seq",
		"Event_ID", "Nats-Msg-Id", "nats-expected-stream", "NATS-Rollup", "googclient_schemaencoding", "goog-anything",
		"GOOG", "googol",
		"x-posthaste-seq", "X-Posthaste-Anything", "CC", "bcc",
	} {
		inputs = append(inputs, rejected("header "+reserved, "headers", header(reserved, Canary)))
	}
	return inGroup("broker", inputs...)
}

// timeInputs are about occurredAt, which is data, and which every reader must be able to parse.
func timeInputs() []Input {
	at := func(when time.Time) func(*Given) { return func(g *Given) { g.At = when } }
	date := func(year int, month time.Month, day, hour, minute, second, nano int, zone *time.Location) func(*Given) {
		return at(time.Date(year, month, day, hour, minute, second, nano, zone))
	}
	utc := time.UTC
	const beyond = "PostgreSQL has no such time"
	return inGroup("time",
		stored("the very first moment after zero", date(1, 1, 1, 0, 0, 0, 1000, utc)),
		rejected("year 0", "occurred_at", date(0, 12, 31, 23, 59, 59, 999999000, utc), "1", "9999"),
		rejected("year -1", "occurred_at", date(-1, 1, 1, 0, 0, 0, 0, utc)),
		rejected("year -4712", "occurred_at", date(-4712, 6, 1, 0, 0, 0, 0, utc)),
		rejected("year -100000", "occurred_at", date(-100_000, 1, 1, 0, 0, 0, 0, utc)).goOnly(beyond),
		stored("the last microsecond of 9999", date(9999, 12, 31, 23, 59, 59, 999999000, utc)),
		rejected("year 10000", "occurred_at", date(10000, 1, 1, 0, 0, 0, 0, utc), "1", "9999"),
		rejected("year 100000", "occurred_at", date(100_000, 1, 1, 0, 0, 0, 0, utc)),
		rejected("year 300000000", "occurred_at", date(300_000_000, 1, 1, 0, 0, 0, 0, utc)).goOnly(beyond),
		rejected("largest number of seconds", "occurred_at", at(time.Unix(1<<62, 0))).goOnly(beyond),
		rejected("9999 here and 10000 in UTC", "occurred_at", date(9999, 12, 31, 23, 30, 0, 0, time.FixedZone("w", -3600))),
		stored("10000 here and 9999 in UTC", date(10000, 1, 1, 0, 30, 0, 0, time.FixedZone("e", 3600))),
		rejected("1 here and 0 in UTC", "occurred_at", date(1, 1, 1, 0, 30, 0, 0, time.FixedZone("e", 3600))),
		stored("0 here and 1 in UTC", date(0, 12, 31, 23, 30, 0, 0, time.FixedZone("w", -3600))),
		stored("zone 14 hours ahead", date(2026, 1, 1, 0, 0, 0, 0, time.FixedZone("LINT", 14*3600))),
		stored("zone with an odd offset", date(1900, 1, 1, 0, 0, 0, 0, time.FixedZone("LMT", 53*60+28))),
		stored("leap second, as Go sees it", date(2016, 12, 31, 23, 59, 60, 0, utc)),
		stored("29 February of a year that has none", date(2023, 2, 29, 0, 0, 0, 0, utc)),
		stored("29 February of 2000", date(2000, 2, 29, 0, 0, 0, 0, utc)),
		stored("day that the Gregorian calendar skipped", date(1582, 10, 10, 0, 0, 0, 0, utc)),
		stored("before 1970", date(1969, 12, 31, 23, 59, 59, 999999000, utc)),
		stored("1970", at(time.Unix(0, 0))),
		stored("beyond 32-bit seconds", at(time.Unix(1<<31, 0))),
		stored("beyond 64-bit nanoseconds", date(2262, 4, 12, 0, 0, 0, 0, utc)),
		stored("nanoseconds, which are cut", date(2026, 1, 1, 0, 0, 0, 999999999, utc)),
		stored("half a microsecond, which is cut", date(2026, 1, 1, 0, 0, 0, 500, utc)),
		stored("hour that a summer-time change skips", date(2026, 3, 29, 2, 30, 0, 0, time.FixedZone("CET", 3600))),
		stored("with a monotonic clock", at(time.Now())),
	)
}
