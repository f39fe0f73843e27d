package hostile

import (
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

// aroundRows can exist only where somebody went around the checks: who brings a lane is believed, and so is a restore.
// The relay looks at every row: what breaks a rule is dead, and never becomes a message.
func aroundRows() []input {
	r := rows{group: "around", around: true}
	long := strings.Repeat("x", 10_000)
	for what, text := range sorted(map[string]string{
		"null": "null", "a list": `["` + secret + `"]`, "a text": `"` + secret + `"`, "a number": "1e400", "true": "true",
		"an empty object":              "{}",
		"an envelope of another event": strings.ReplaceAll(goodRow, "{id}", "01980a3c-0000-7000-8000-000000000001"),
		"an envelope whose id is none": strings.ReplaceAll(goodRow, "{id}", secret),
		"without eventId":              `{"version":1,"occurredAt":"2026-03-01T12:30:15Z","data":{}}`,
		"a secret for a name":          `{"` + secret + `":"` + secret + `"}`,
	}) {
		r.add("payload that is "+what, always(invalid), payload(text))
	}
	data := func(text string) func(*row) {
		return payload(`{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15Z","data":` + text + `}`)
	}
	for what, text := range sorted(map[string]string{
		"a NUL escape": `{"t":"\u0000"}`, "half a surrogate pair": `{"t":"\ud83d"}`, "a NUL escape in a name": `{"\u0000":1}`,
	}) {
		r.add("data with "+what, always(invalid), data(text))
	}
	// What the emit side refuses the relay refuses as well, but for the limits of a contract.
	r.add("data with a number beyond a float", always(invalid), data(`{"n":1e400}`))
	r.add("data with a number of 100 digits", always(invalid), data(`{"n":`+strings.Repeat("7", 100)+`}`))
	r.add("data of 65 levels", always(invalid), data(strings.Repeat(`{"a":`, 65)+"1"+strings.Repeat("}", 65)))
	r.add("data of 5,000 levels", always(invalid), data(strings.Repeat(`{"a":`, 5_000)+"1"+strings.Repeat("}", 5_000)))
	r.add("data of 9,999 levels", always(invalid), data(strings.Repeat(`{"a":`, 9_999)+"1"+strings.Repeat("}", 9_999)))
	r.add("data of 20 MB", always(isRejected), data(`{"pad":"`+secret+strings.Repeat("x", 20_000_000)+`"}`))
	r.add("event type that is empty", always(parked), func(r *row) { r.kind = "" })
	r.add("event type of 10,000 letters", always(invalid), func(r *row) { r.kind = long })
	r.add("event type with CRLF and ANSI", always(parked), func(r *row) { r.kind = "a\r\nb\x1b[2J" })
	r.add("event type that nobody knows", always(parked), func(r *row) { r.kind = "order_unknown" })
	r.add("aggregate type that is empty", always(mismatched), func(r *row) { r.aggregate = "" })
	r.add("aggregate type of 10,000 letters", always(invalid), func(r *row) { r.aggregate = long })
	r.add("aggregate type of another contract", always(mismatched), func(r *row) { r.aggregate = "invoice" })
	r.add("aggregate id that is empty", always(mismatched), func(r *row) { r.key = "" })
	r.add("aggregate id of 512 letters", always(delivered), func(r *row) { r.key = long[:512] })
	r.add("aggregate id of 513 letters", always(invalid), func(r *row) { r.key = long[:513] })
	r.add("aggregate id of 10,000 letters", always(invalid), func(r *row) { r.key = long })
	r.add("aggregate id with CRLF", always(invalid), func(r *row) { r.key = "x\r\nNats-Rollup: all" })
	r.add("aggregate id with ANSI", always(invalid), func(r *row) { r.key = "\x1b[2J\x1b]0;x\a" })
	r.add("namespace that is empty", always(delivered), func(r *row) { r.namespace = "" })
	r.add("namespace that nobody knows", always(delivered), func(r *row) { r.namespace = "elsewhere" })
	r.add("namespace of 10,000 letters", always(invalid), func(r *row) { r.namespace = long })
	r.add("namespace with a line break", always(invalid), func(r *row) { r.namespace = "a\nb" })
	r.add("tenant of 10,000 letters", always(invalid), func(r *row) { r.tenant = long })
	r.add("dedupe key of 10,000 letters", always(invalid), func(r *row) { r.dedupe = long })
	r.add("dedupe key of another tenant", always(invalid), func(r *row) { r.tenant, r.dedupe = "acme", "other/1" })
	r.add("lane of another aggregate", always(parked), func(r *row) { r.lane = ownLane + " % 64 + 1" })
	r.add("id of version 4", always(invalid), func(r *row) { r.id = "2f7c1d2e-4b5a-4c6d-8e9f-0a1b2c3d4e5f" })
	r.add("id of zeros", always(invalid), func(r *row) { r.id = outbox.ID{}.String() })
	r.add("id of ones", always(invalid), func(r *row) { r.id = "ffffffff-ffff-ffff-ffff-ffffffffffff" })
	for what, text := range sorted(map[string]string{
		"a list": `["` + secret + `"]`, "a text": `"` + secret + `"`, "null": "null", "a number": "7",
	}) {
		r.add("headers that are "+what, always(invalid), headers(text))
	}
	r.add("headers of 1 MB", always(isRejected), headers(`{"h":"`+secret+strings.Repeat("x", 1_000_000)+`"}`))
	r.add("headers of 500 kB", onEach(tooLarge, rejected), headers(`{"h":"`+secret+strings.Repeat("x", 500_000)+`"}`))
	r.add("headers with event_id", always(delivered), headers(`{"event_id":"x"}`))
	r.add("headers with a NUL", always(delivered), headers(`{"h":"a\u0000b"}`))
	return r.inputs
}

// timeRows have times that no clock shows. What waits for a time to come is set aside and holds nobody up.
func timeRows() []input {
	r := rows{group: "time", around: true}
	created := func(expression string) func(*row) {
		return func(r *row) { r.more = map[string]string{"created_at": expression} }
	}
	for what, at := range sorted(map[string]string{
		"in the year 1": "'0001-01-01T00:00:00Z'", "before 1708": "'1500-06-01T00:00:00Z'",
		"before 1970": "'1969-12-31T23:59:59.999999Z'",
		"after 2262":  "'2300-01-01T00:00:00Z'", "in the year 9999": "'9999-12-31T23:59:59.999999Z'",
		"tomorrow": "now() + interval '1 day'",
	}) {
		r.add("created "+what, always(delivered), created(at))
	}
	for what, at := range sorted(map[string]string{
		"before time": "'-infinity'", "after time": "'infinity'", "in 4713 BC": "'4713-11-25T00:00:00Z BC'",
		"in the year 10000":  "'10000-01-01T00:00:00Z'",
		"in the year 294276": "'294276-12-31T23:59:59Z'",
	}) {
		r.add("created "+what, always(invalid), created(at))
	}
	due := func(expression string) func(*row) {
		return func(r *row) {
			r.due, r.more = expression, map[string]string{"state": "1", "attempt_count": "1"}
		}
	}
	for what, at := range sorted(map[string]string{
		"before time": "'-infinity'", "in 4713 BC": "'4713-11-25T00:00:00Z BC'", "in the year 1": "'0001-01-01T00:00:00Z'",
		"in 1500": "'1500-01-01T00:00:00Z'",
		"in 1970": "'1970-01-01T00:00:00Z'", "a year ago": "now() - interval '1 year'", "now": "now()",
	}) {
		r.add("due "+what, always(delivered), due(at))
	}
	for what, at := range sorted(map[string]string{
		"after time": "'infinity'", "in the year 294276": "'294276-12-31T23:59:59Z'",
		"in the year 9999": "'9999-12-31T23:59:59Z'", "in 2300": "'2300-01-01T00:00:00Z'",
		"in a year": "now() + interval '1 year'", "in a day": "now() + interval '1 day'",
	}) {
		r.add("due "+what, always(parked), due(at))
	}
	count := func(n string) func(*row) {
		return func(r *row) { r.more = map[string]string{"attempt_count": n} }
	}
	r.add("attempts 2^31-1", always(delivered), count("2147483647"))
	r.add("attempts -2^31", always(delivered), count("-2147483648"))
	r.add("attempts 2^31-1 and invalid", always(invalid), func(r *row) {
		count("2147483647")(r)
		r.payload = "{}"
	})
	return r.inputs
}
