package operator_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

func TestParseFilter(t *testing.T) {
	t.Parallel()
	const id = "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"
	day := func(d int) time.Time { return time.Date(2026, 1, d, 0, 0, 0, 0, time.UTC) }
	for text, want := range map[string]operator.Filter{
		"":                      {},
		"  type:a  tenant:t ":   {Types: []string{"a"}, Tenant: "t"},
		"type:a,b topic:orders": {Types: []string{"a", "b"}, Topic: "orders"},
		"aggregate:order/4/7":   {AggregateType: "order", AggregateID: "4/7"},
		"aggregate:order":       {AggregateType: "order"},
		`error:"no \"route\" to: host" namespace:x`: {Error: `no "route" to: host`, Namespace: "x"},
		"state:dead":                     {States: []string{"dead and blocking", "dead"}},
		"state:blocking,blocked,pending": {States: []string{"dead and blocking", "waiting", "ready"}},
		`state:"dead and blocking"`:      {States: []string{"dead and blocking"}},
		"state:held":                     {States: []string{"retrying", "parked", "waiting", "dead and blocking"}},
		"attempts:>3":                    {Attempts: operator.AttemptRange{Set: true, Least: 4, Most: 1<<31 - 1}},
		"attempts:<3":                    {Attempts: operator.AttemptRange{Set: true, Most: 2}},
		"attempts:0":                     {Attempts: operator.AttemptRange{Set: true}},
		"created:>1h30m":                 {Created: operator.Period{Beyond: 90 * time.Minute}},
		"created:<2d published:<3w": {
			Created: operator.Period{Within: 48 * time.Hour}, Published: operator.Period{Within: 504 * time.Hour},
		},
		"created:2026-01-30":             {Created: operator.Period{From: day(30), To: day(31)}},
		"created:2026-01-30..2026-01-31": {Created: operator.Period{From: day(30), To: day(31)}},
		"created:..2026-01-31T00:00:00Z": {Created: operator.Period{To: day(31)}},
		"data.customer.id:4711 data.x:a:b": {Data: []operator.DataValue{
			{Path: []string{"customer", "id"}, Value: "4711"}, {Path: []string{"x"}, Value: "a:b"},
		}},
	} {
		got, err := operator.ParseFilter(text)
		if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%q: got %v, %v\nwant %v", text, got, err, want)
		}
	}
	for _, text := range []string{id, "id:" + id} {
		if got, err := operator.ParseFilter(text); err != nil || len(got.IDs) != 1 || got.IDs[0].String() != id {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
}

// TestParseFilterSaysWhatIsWrong: the field, what one may have meant, and the fields that there are.
func TestParseFilterSaysWhatIsWrong(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"typ:a":                             `there is no field "typ": did you mean type?; the fields are type, aggregate`,
		"status:dead":                       "did you mean state?",
		"Tenant:a":                          "did you mean tenant?",
		"zzzzzz:a":                          `there is no field "zzzzzz"; the fields are`,
		"orders":                            `"orders" names no field: write field:value`,
		"type:":                             "type: has no value",
		"type:a type:b":                     "type: is there twice",
		"type:a,,b":                         "a value between the commas is missing",
		"state:broken":                      `state: "broken": there is no such state: use ready`,
		"id:7":                              "id: \"7\": an id is a UUID",
		"created:1h":                        `created: "1h": write it as >1h (older than an hour)`,
		"created:>":                         "write it as",
		"created:<-1h":                      "write it as",
		"created:>99999999999d":             "write it as",
		"created:2026-13-01":                "write it as",
		"created:..":                        "write it as",
		"created:2026-02-01..2026-01-01":    "its end is not after its begin",
		"attempts:many":                     "write a number",
		"attempts:>-1":                      "write a number",
		"attempts:>2147483647":              "no event has so many",
		"aggregate:/1":                      "write it as TYPE/ID or TYPE",
		"aggregate:order/":                  "write it as TYPE/ID or TYPE",
		"data.:x":                           "write the path as data.name.name",
		`error:"x`:                          "a quote is not closed",
		"tenant:a\x00":                      "control character",
		"tenant:\xff":                       "not UTF-8",
		"error:" + strings.Repeat("x", 600): "more than 512 characters",
		strings.Repeat("x", 5000):           "the limit is 4096",
		strings.Repeat("data.x:1 ", 40):     "40 terms, the limit is 32",
		"type:" + strings.Repeat("a,", 200): "201 values, the limit is 100",
	} {
		_, err := operator.ParseFilter(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
	}
	_, err := operator.ParseFilter("typ:a state:x")
	if err == nil || !strings.Contains(err.Error(), "typ") || !strings.Contains(err.Error(), "no such state") {
		t.Errorf("both are told: %v", err)
	}
}

func FuzzParseFilter(f *testing.F) {
	for _, text := range []string{`type:a state:dead "x y"`, "created:>1h attempts:<3 data.a.b:c", "id:x aggregate:a/b"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if _, err := operator.ParseFilter(text); err != nil && !strings.HasPrefix(err.Error(), "filter: ") {
			t.Errorf("%q: %v", text, err)
		}
	})
}

// TestAFilterIsWrittenAsItIsRead: what a job writes down means the same when it is read again.
func TestAFilterIsWrittenAsItIsRead(t *testing.T) {
	t.Parallel()
	for _, text := range []string{
		"", "type:a,b", "aggregate:order", "aggregate:order/47,11", `"aggregate:order/a \"b\" \\c d"`, "tenant:acme",
		"namespace:n topic:orders", "state:dead", "state:blocking", "state:ready,published", "reason:rejected",
		`error:"connection refused"`, "id:01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e,01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7f",
		"created:<1h", "created:>48h0m0s", "created:2026-01-31", "published:2026-01-31T01:02:03.5Z..",
		"created:2026-01-01T10:00:00+02:00..2026-01-02T10:00:00-07:00",
		"published:..2026-01-31T01:02:03Z", "attempts:3", "attempts:>3", "attempts:<3", "attempts:0", "data.a.b:x",
		`data.a:"b c" data.d:e`, "tenant:\"acme\u3000state:published\"", "tenant:\"a\u00a0b\"",
	} {
		filter, err := operator.ParseFilter(text)
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		again, err := operator.ParseFilter(filter.String())
		if err != nil || !reflect.DeepEqual(again, filter) {
			t.Errorf("%s is written as %s: %+v, %v, want %+v", text, filter, again, err, filter)
		}
	}
}
