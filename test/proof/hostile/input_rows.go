package hostile

import (
	"fmt"
	"strings"
)

func payload(text string) func(*row) { return func(r *row) { r.payload = text } }
func headers(text string) func(*row) { return func(r *row) { r.headers = text } }

// envelopeRows are envelopes that another language might write: the table's own check looks at eventId alone.
func envelopeRows() []input {
	const tail = `"occurredAt":"2026-03-01T12:30:15Z","data":{"note":"` + secret + `"}}`
	r := rows{group: "envelope"}
	r.add("keys in another order", always(delivered),
		payload(`{"data":{"note":"`+secret+`"},"occurredAt":"2026-03-01T12:30:15Z","eventId":"{id}","version":1}`))
	r.add("white space everywhere", always(delivered),
		payload(" \t\r\n{ \"version\" : 1 , \"eventId\" : \"{id}\" ,\n"+tail+" \n"))
	r.add("escaped names", always(delivered), payload(`{"\u0076ersion":1,"\u0065ventId":"{id}",`+tail))
	r.add("right eventId behind a wrong one", always(delivered),
		payload(`{"version":1,"eventId":"x","eventId":"{id}",`+tail))
	r.add("wrong eventId behind the right one", always(isRejected),
		payload(`{"version":1,"eventId":"{id}","eventId":"x",`+tail))
	r.add("eventId missing", always(isRejected), payload(`{"version":1,`+tail))
	r.add("eventId null", always(isRejected), payload(`{"version":1,"eventId":null,`+tail))
	r.add("eventId of another event", always(isRejected),
		payload(`{"version":1,"eventId":"01980a3c-0000-7000-8000-000000000001",`+tail))
	r.add("EVENTID", always(isRejected), payload(`{"version":1,"EVENTID":"{id}",`+tail))
	r.add("eventId and EVENTID", always(invalid), payload(`{"version":1,"eventId":"{id}","EVENTID":"x",`+tail))
	for name, version := range sorted(map[string]string{
		"null": "null", "zero": "0", "negative": "-1", "a text": `"1"`, "a fraction": "1.5", "1.0": "1.0",
		"an exponent": "1e0", "true": "true",
		"2^63": "9223372036854775808", "beyond a float": "1e400", "a list": "[1]",
	}) {
		r.add("version "+name, always(invalid), payload(`{"version":`+version+`,"eventId":"{id}",`+tail))
	}
	r.add("version missing", always(invalid), payload(`{"eventId":"{id}",`+tail))
	r.add("version 2^31", always(delivered), payload(`{"version":2147483648,"eventId":"{id}",`+tail))
	r.add("Version in capitals", always(invalid), payload(`{"VERSION":1,"eventId":"{id}",`+tail))
	for name, at := range sorted(map[string]string{
		"null": "null", "empty": `""`, "a number": "1772368215", "yesterday": `"yesterday"`,
		"the year 10000": `"10000-01-01T00:00:00Z"`,
		"a leap second":  `"2016-12-31T23:59:60Z"`, "hour 24": `"2026-03-01T24:00:00Z"`,
		"without a zone": `"2026-03-01T12:30:15"`,
		"with a space":   `"2026-03-01 12:30:15Z"`, "30 February": `"2026-02-30T00:00:00Z"`,
		"a negative year": `"-001-01-01T00:00:00Z"`,
		"a secret":        `"` + secret + `"`,
	}) {
		r.add("occurredAt "+name, always(invalid), payload(`{"version":1,"eventId":"{id}","occurredAt":`+at+`,"data":{}}`))
	}
	r.add("occurredAt missing", always(invalid), payload(`{"version":1,"eventId":"{id}","data":{}}`))
	for name, at := range sorted(map[string]string{
		"the year 0": "0000-01-01T00:00:00Z", "the year 9999": "9999-12-31T23:59:59.999999999Z",
		"with nanoseconds and a zone": "2026-03-01T12:30:15.123456789+14:00",
	}) {
		r.add("occurredAt in "+name, always(delivered),
			payload(`{"version":1,"eventId":"{id}","occurredAt":"`+at+`","data":{}}`))
	}
	for name, data := range sorted(map[string]string{
		"null": "null", "a text": `"` + secret + `"`, "a list": `["` + secret + `"]`, "a number": "7", "true": "true",
	}) {
		r.add("data "+name, always(invalid),
			payload(`{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z","data":`+data+`}`))
	}
	r.add("data missing", always(invalid), payload(`{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z"}`))
	for name, actor := range sorted(map[string]string{
		"null": "null", "a text": `"` + secret + `"`, "a list": "[]", "with a number": `{"type":7,"id":"1"}`,
	}) {
		r.add("actor "+name, always(invalid), payload(`{"version":1,"eventId":"{id}","actor":`+actor+`,`+tail))
	}
	r.add("a field that is no envelope's", always(invalid), payload(`{"version":1,"eventId":"{id}","`+secret+`":1,`+tail))
	r.add("blocks its aggregate when it is dead", always(invalid), func(r *row) {
		r.kind = blockingType
		r.payload = `{"version":0,"eventId":"{id}",` + tail
	})
	return r.inputs
}

// headerRows have headers that the table's own check lets through: it wants an object without event_id.
func headerRows() []input {
	r := rows{group: "broker"}
	named := func(name, value string) func(*row) { return headers(fmt.Sprintf(`{%q:%q}`, name, value)) }
	for _, name := range []string{
		"Nats-Rollup", "nats-msg-id", "NATS-Expected-Last-Sequence", "Nats-Expected-Stream", "Nats-TTL",
	} {
		r.add("header "+name, onEach(rejected, delivered), named(name, secret))
	}
	for _, name := range []string{"googclient_schemaencoding", "goog-anything", "googol"} {
		r.add("header "+name, onEach(delivered, rejected), named(name, secret))
	}
	for what, name := range sorted(map[string]string{
		"a space": "a b", "a colon": "a:b", "CRLF": "a\r\nNats-Rollup: all", "a NATS wildcard": "a.>", "no letter": "",
		"Greek": "κλειδί",
	}) {
		wants := onEach(rejected, delivered)
		if name == "" {
			wants = always(rejected)
		}
		r.add("header whose name has "+what, wants, named(name, secret))
	}
	r.add("header name of 256 bytes", always(delivered), named(strings.Repeat("n", 256), "v"))
	r.add("header name of 257 bytes", onEach(delivered, rejected), named(strings.Repeat("n", 257), secret))
	r.add("header value of 1,024 bytes", always(delivered), named("h", strings.Repeat("v", 1024)))
	r.add("header value of 1,025 bytes", onEach(delivered, rejected), named("h", strings.Repeat("v", 1025)))
	r.add("header value of 100,000 bytes", onEach(tooLarge, rejected), named("h", secret+strings.Repeat("v", 100_000)))
	for what, value := range sorted(map[string]string{
		"CRLF": "a\r\nNats-Rollup: all", "a line break": "a\nb", "a tab at the end": "a\t", "spaces at the ends": "  a  ",
		"ANSI":            "\u001b[2J",
		"an encoded word": "=?utf-8?b?eA==?=", "half an encoded word": "=?utf-8?b?", "a next-line": "\u0085",
		"a no-break space": "\u00a0",
	}) {
		encoded := strings.NewReplacer("\r", `\r`, "\n", `\n`, "\t", `\t`, "\u001b", `\u001b`).Replace(value)
		r.add("header value with "+what, always(delivered), headers(`{"h":"`+encoded+`"}`))
	}
	many := func(n int) func(*row) {
		var list []string
		for i := range n {
			list = append(list, fmt.Sprintf(`"h%d":"v"`, i))
		}
		return headers("{" + strings.Join(list, ",") + "}")
	}
	r.add("94 headers, 100 with ours", always(delivered), many(94))
	r.add("95 headers, 101 with ours", onEach(delivered, rejected), many(95))
	r.add("headers that pretend to be the row", always(delivered),
		headers(`{"event_type":"x","aggregate_id":"y","aggregate_type":"z","tenant_id":"evil","dedupe_key":"k",`+
			`"created_at":"never","outbox_seq":"0"}`))
	r.add("same header twice", always(delivered), headers(`{"h":"1","h":"2"}`))
	for what, value := range sorted(map[string]string{
		"a number": "1", "null": "null", "true": "true", "an object": `{"a":"` + secret + `"}`,
		"a list": `["` + secret + `"]`,
	}) {
		r.add("header whose value is "+what, always(invalid), headers(`{"a":"b","h":`+value+`}`))
	}
	for what, value := range sorted(map[string]string{
		"a list": "[]", "a text": `"x"`, "a number": "7", "null": "null", "a NUL escape": `{"h":"\u0000"}`,
		"event_id": `{"event_id":"x"}`,
	}) {
		r.add("headers that are "+what, always(isRejected), headers(value))
	}
	return r.inputs
}
