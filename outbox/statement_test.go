package outbox

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
	"testing"
)

func thing(aggregateID, data string) Event {
	return anythingContract(nil).New(aggregateID, json.RawMessage(data))
}

func keyed(key, data string) Event {
	event := thing("1", data)
	event.DedupeKey = key
	return event
}

func TestStatementIsOneOfFour(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name   string
		events []Event
		calls  string
		args   int
	}{
		{"one", []Event{thing("1", `{}`)}, "VALUES (", 8},
		{"many", []Event{thing("1", `{}`), thing("2", `{}`)}, "string_to_table($1", 8},
		{"one with a key", []Event{keyed("k", `{}`)}, "ON CONFLICT ON CONSTRAINT", 11},
		{"many with a key", []Event{keyed("k", `{}`), thing("1", `{}`)}, "outbox_emit_all_or_none(", 11},
		{"two that are one", []Event{keyed("k", `{}`), keyed("k", `{}`)}, "ON CONFLICT ON CONSTRAINT", 11},
	} {
		stmt, err := Statement(`a"b`, test.events...)
		if err != nil {
			t.Errorf("%s: %v", test.name, err)
			continue
		}
		if !strings.Contains(stmt.SQL, test.calls) || !strings.Contains(stmt.SQL, `"a""b".outbox_e`) ||
			len(stmt.Args) != test.args {
			t.Errorf("%s: %d arguments for %s", test.name, len(stmt.Args), stmt.SQL)
		}
		for i, arg := range stmt.Args {
			if _, text := arg.(string); !text && arg != nil {
				t.Errorf("%s: argument %d is a %T: a driver would have to know its type", test.name, i+1, arg)
			}
		}
	}
}

// A column of many events is taken apart at the separator: it has as many values as there are events, whatever stands
// in them.
func TestColumnsComeApartAsTheyWentTogether(t *testing.T) {
	t.Parallel()
	odd := thing("NULL", `{"a":"\u001e\\ \" ,{}","b":null}`)
	odd.TenantID, odd.Headers = `{"a","b"}`, map[string]string{"x": `"\`}
	plain := thing("a,b", `{ "a" : 1 }`)
	stmt, err := Statement("", odd, plain, keyed("k", "{\n\t}\r\n"))
	if err != nil {
		t.Fatal(err)
	}
	for i, column := range stmt.columns() {
		values := strings.Split(stmt.Args[i].(string), "\x1e")
		if len(values) != len(stmt.rows) {
			t.Fatalf("argument %d has %d values for %d events: %q", i+1, len(values), len(stmt.rows), stmt.Args[i])
		}
		for j, value := range values {
			if want := column(&stmt.rows[j]); value != want {
				t.Errorf("argument %d, event %d: %q, want %q", i+1, j, value, want)
			}
		}
	}
}

func TestNoValueHoldsTheSeparator(t *testing.T) {
	t.Parallel()
	for field, change := range map[string]func(*Event){
		"aggregate_id": func(e *Event) { e.AggregateID += separator },
		"tenant_id":    func(e *Event) { e.TenantID = separator },
		"dedupe_key":   func(e *Event) { e.DedupeKey = separator },
		"actor":        func(e *Event) { e.Actor = &Actor{Type: "user", ID: separator} },
		"headers":      func(e *Event) { e.Headers = map[string]string{"x": separator} },
		"data":         func(e *Event) { *e = thing("1", `{"a":"`+separator+`"}`) },
		"data outside": func(e *Event) { *e = thing("1", `{}`+separator) },
		"name":         func(e *Event) { e.Headers = map[string]string{"x" + separator: ""} },
		"contract": func(e *Event) {
			*e = Define[json.RawMessage](Contract{Type: "a" + separator, Aggregate: "b" + separator, Topic: "t"}).New("1",
				json.RawMessage(`{}`))
		},
	} {
		event := thing("1", `{}`)
		change(&event)
		if stmt, err := Statement("", thing("2", `{}`), event); !errors.Is(err, ErrRefused) {
			t.Errorf("%s: got %v with %q", field, err, stmt.Args)
		}
	}
}

func TestReceiptsFollowTheEvents(t *testing.T) {
	t.Parallel()
	stmt, err := Statement("", keyed("a", `{}`), keyed("b", `{}`), keyed("a", `{}`), thing("1", `{}`))
	if err != nil {
		t.Fatal(err)
	}
	a, b, c := NewID(), NewID(), NewID()
	receipts, err := stmt.Receipts("+" + a.String() + ",=" + b.String() + ",+" + c.String())
	if err != nil {
		t.Fatal(err)
	}
	want := []Receipt{{a, true}, {b, false}, {a, false}, {c, true}}
	for i := range want {
		if receipts[i] != want[i] {
			t.Errorf("receipt %d is %v, want %v", i, receipts[i], want[i])
		}
	}
	_, err = stmt.Receipts("+" + a.String() + ",!" + b.String() + ",+" + c.String())
	var mismatch *DedupeMismatchError
	if !errors.As(err, &mismatch) || mismatch.Index != 1 || mismatch.FirstID != b || !errors.Is(err, ErrRefused) ||
		!errors.Is(err, ErrDedupeMismatch) {
		t.Errorf("got %v", err)
	}
	for _, answer := range []string{"", "3", "+" + a.String(), "+x,+y,+z"} {
		if _, err := stmt.Receipts(answer); err == nil || errors.Is(err, ErrRefused) {
			t.Errorf("answer %q: got %v", answer, err)
		}
	}
}

func TestOneCallMayNotContradictItself(t *testing.T) {
	t.Parallel()
	if _, err := Statement("", keyed("k", `{"a":1}`), keyed("k", `{"a":2}`)); !errors.Is(err, ErrDedupeMismatch) {
		t.Errorf("got %v", err)
	}
	firstWins := Define[json.RawMessage](Contract{Type: "anything", Aggregate: "thing", Topic: "t", FirstWins: true})
	first, second := firstWins.New("1", json.RawMessage(`{"a":1}`)), firstWins.New("1", json.RawMessage(`{"a":2}`))
	first.DedupeKey, second.DedupeKey = "k", "k"
	if _, err := Statement("", first, second); err != nil {
		t.Errorf("the contract lets the first win: %v", err)
	}
}

func TestContentHashLeavesTheEnvelopeOut(t *testing.T) {
	t.Parallel()
	stmt, err := Statement("", keyed("a", `{"a":1}`), keyed("b", `{"a":1}`), keyed("c", `{"a":2}`))
	if err != nil {
		t.Fatal(err)
	}
	if stmt.rows[0].contentHash != stmt.rows[1].contentHash {
		t.Error("the same content under two ids has two hashes")
	}
	if stmt.rows[0].contentHash == stmt.rows[2].contentHash {
		t.Error("other content has the same hash")
	}
	if contentHash("a", "bc", nil) == contentHash("ab", "c", nil) {
		t.Error("the parts run into each other")
	}
}

func TestErrorsNameTheFieldAndNeverTheValue(t *testing.T) {
	t.Parallel()
	const canary = "c4n4ry"
	with := func(change func(*Event)) Event {
		event := thing("1", `{}`)
		change(&event)
		return event
	}
	long := strings.Repeat(canary, 200)
	for _, test := range []struct {
		name    string
		event   Event
		field   string
		problem string
	}{
		{"no contract", Event{AggregateID: "1"}, "event", "not made by a contract"},
		{"aggregate id missing", thing("", `{}`), "aggregate_id", "missing"},
		{"aggregate id long", thing(long, `{}`), "aggregate_id", "1200 bytes, the limit is 512"},
		{"aggregate id with a line break", thing(canary+"\n", `{}`), "aggregate_id", "control character"},
		{"aggregate id not UTF-8", thing(canary+"\xff", `{}`), "aggregate_id", "UTF-8"},
		{"tenant long", with(func(e *Event) { e.TenantID = long }), "tenant_id", "1200 bytes, the limit is 128"},
		{"key long", with(func(e *Event) { e.DedupeKey = long }), "dedupe_key", "1200 bytes, the limit is 512"},
		{
			"key of another tenant", with(func(e *Event) { e.TenantID, e.DedupeKey = canary, "other/1" }), "dedupe_key",
			"begin with the tenant",
		},
		{"id of version 4", with(func(e *Event) { e.ID = ID{6: 0x40, 8: 0x80} }), "id", "not a UUIDv7"},
		{"actor without id", with(func(e *Event) { e.Actor = &Actor{Type: canary} }), "actor", "type and id"},
		{
			"header reserved", with(func(e *Event) { e.Headers = map[string]string{"Event_ID": canary} }), "headers", "reserved",
		},
		{
			"header of a broker", with(func(e *Event) { e.Headers = map[string]string{"googclient_x": canary} }), "headers",
			"reserved",
		},
		{
			"header value long", with(func(e *Event) { e.Headers = map[string]string{"x": long} }), "headers",
			"1200 bytes, the limit is 1024",
		},
		{
			"header value with CRLF", with(func(e *Event) { e.Headers = map[string]string{"x": canary + "\r\n"} }), "headers",
			"control character",
		},
		{"data not an object", thing("1", `"`+canary+`"`), "data", "must be a JSON object"},
		{
			"data too large", thing("1", `{"a":"`+strings.Repeat(canary, MaxPayloadBytes/6)+`"}`), "data",
			"the limit is 1048576",
		},
	} {
		_, err := Statement("", thing("ok", `{}`), test.event)
		var invalid *FieldError
		if !errors.As(err, &invalid) || !errors.Is(err, ErrRefused) ||
			invalid.Field != test.field || invalid.Index != 1 || !strings.Contains(err.Error(), test.problem) {
			t.Errorf("%s: got %v, want %s: %s", test.name, err, test.field, test.problem)
		}
		if err != nil && strings.Contains(err.Error(), canary) {
			t.Errorf("%s: the value is in the error: %.200s", test.name, err)
		}
	}
}

func TestPayloadsThatCannotBeEncodedAreInvalid(t *testing.T) {
	t.Parallel()
	type payload struct {
		Text  string   `json:"text"`
		Float float64  `json:"float"`
		Any   any      `json:"any,omitempty"`
		Chan  chan int `json:"-"`
	}
	contract := Define[payload](Contract{Type: "anything", Aggregate: "thing", Topic: "t"})
	for _, test := range []struct {
		name    string
		payload payload
		problem string
	}{
		{"fine", payload{Text: "<&>\u2028 \ufffd \\ufffd"}, ""},
		{"invalid UTF-8 would be replaced", payload{Text: "caf\xe9"}, "not valid UTF-8"},
		{"NaN", payload{Float: math.NaN()}, "NaN"},
		{"a channel", payload{Any: make(chan int)}, "chan int"},
		{"its own error", payload{Any: failing{}}, "MarshalJSON failed"},
	} {
		_, err := Statement("", contract.New("1", test.payload))
		if test.problem == "" && err != nil ||
			test.problem != "" && (err == nil || !strings.Contains(err.Error(), test.problem)) {
			t.Errorf("%s: got %v, want %q", test.name, err, test.problem)
		}
	}
}

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New("c4n4ry") }

func TestTenantMayStandInItsKeyWithOrWithoutHyphens(t *testing.T) {
	t.Parallel()
	const tenant = "0192AF3E-0000-7000-8000-00000000000F"
	for key, want := range map[string]bool{
		tenant + "/turn":                           true,
		strings.ToLower(tenant) + "/turn":          true,
		"0192af3e00007000800000000000000f/turn":    true,
		"0192af3e00007000800000000000000f":         false,
		"0192af3e00007000800000000000000e/turn":    false,
		"x" + tenant + "/turn":                     false,
		"0192af3e00007000800000000000000f0/turn":   false,
		tenant + "turn":                            false,
		"acme/" + strings.ToLower(tenant) + "/foo": false,
	} {
		if got := checkKeyOfTenant(tenant, key) == ""; got != want {
			t.Errorf("%s: got %v", key, got)
		}
	}
	if checkKeyOfTenant("acme-eu", "acmeeu/1") == "" {
		t.Error("hyphens only fall away in a UUID")
	}
}

func TestLimitsOfOneCall(t *testing.T) {
	t.Parallel()
	if _, err := Statement(""); !errors.Is(err, ErrRefused) {
		t.Errorf("no events: %v", err)
	}
	if _, err := Statement("", make([]Event, MaxEventsPerEmit+1)...); err == nil ||
		!strings.Contains(err.Error(), "10001 of them") {
		t.Errorf("too many: %v", err)
	}
	large := thing("1", `{"a":"`+strings.Repeat("x", 1<<20-1000)+`"}`)
	events := make([]Event, 17)
	for i := range events {
		events[i] = large
	}
	if _, err := Statement("", events...); err == nil || !strings.Contains(err.Error(), "the limit is 16777216") {
		t.Errorf("too large together: %v", err)
	}
}

// examples/sql/check.sql asks outbox_emit for the same hash: Go and SQL producers share their keys.
func TestContentHashIsTheOneOfSQL(t *testing.T) {
	t.Parallel()
	const data = `{"total": 12.50,  "currency":"EUR","zeta":1, "alpha":2, "note":"Grüße, 世界 🚀 \"[1:2]\" \u00e9"}`
	const want = "510dc9756dfae8e384634754463dbe20e9975f87433708b1643a106fb96bfc56"
	if got := fmt.Sprintf("%x", contentHash("order", "1001", []byte(data))); got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
