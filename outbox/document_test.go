package outbox

import (
	"strings"
	"testing"
)

func TestCheckDocument(t *testing.T) {
	t.Parallel()
	nested := func(levels int) string { return strings.Repeat("[", levels) + strings.Repeat("]", levels) }
	keys := func(n int) string { return "{" + strings.Repeat(`"k":1,`, n-1) + `"k":1}` }
	for _, test := range []struct{ name, document, problem string }{
		{"object", `{"a": [1, 2.5e-3, true, null, "x"]}`, ""},
		{"brackets and digits in strings", `{"a":"[[[{{{:::` + strings.Repeat("9", 60) + `e999"}`, ""},
		{"escaped quote", `{"a":"\"\\\"["}`, ""},
		{"duplicate keys are kept", `{"a":1,"a":2}`, ""},
		{"whole surrogate pair", `"\ud83d\ude00"`, ""},
		{"escaped backslash before u0000", `"\\u0000"`, ""},
		{"64 levels", nested(64), ""},
		{"65 levels", nested(65), "nested deeper"},
		{"5000 levels", nested(5000), "nested deeper"},
		{"20000 levels", nested(20000), "not one valid JSON document"},
		{"10000 keys", keys(10_000), ""},
		{"10001 keys", keys(10_001), "more than 10000 keys"},
		{"40 digits", strings.Repeat("9", 40), ""},
		{"41 digits", strings.Repeat("9", 41), "41 digits"},
		{"41 digits around the point", "[0." + strings.Repeat("1", 40) + "]", "41 digits"},
		{"exponent 308", "1e308", ""},
		{"exponent 309", "[1e309]", "exponent"},
		{"exponent -309", "1e-309", "exponent"},
		{"number bomb", "1e131071", "exponent"},
		{"exponent that overflows an int", "1e99999999999999999999999", "exponent"},
		{"many digits and an exponent", strings.Repeat("9", 41) + "e1", "41 digits"},
		{"NUL escape", `{"a":"\u0000"}`, `\u0000`},
		{"NUL escape in a key", `{"\u0000":1}`, `\u0000`},
		{"lone high surrogate", `"\ud83d"`, "surrogate"},
		{"lone high surrogate before text", `"\ud83d and more text"`, "surrogate"},
		{"two high surrogates", `"\ud83d\ud83d"`, "surrogate"},
		{"lone low surrogate", `"\ude00"`, "surrogate"},
		{"reversed pair", `"\ude00\ud83d"`, "surrogate"},
		{"raw NUL", "{\"a\":\"\x00\"}", "not one valid JSON document"},
		{"invalid UTF-8", "{\"a\":\"\xff\"}", "UTF-8"},
		{"raw surrogate", "\"\xed\xa0\x80\"", "UTF-8"},
		{"overlong", "\"\xc0\xaf\"", "UTF-8"},
		{"byte order mark", "\ufeff{}", "not one valid JSON document"},
		{"empty", "", "not one valid JSON document"},
		{"two documents", "{}{}", "not one valid JSON document"},
		{"trailing comma", `{"a":1,}`, "not one valid JSON document"},
		{"NaN", `{"a":NaN}`, "not one valid JSON document"},
		{"comment", `{/* */}`, "not one valid JSON document"},
	} {
		got := checkDocument([]byte(test.document))
		if test.problem == "" && got != "" || !strings.Contains(got, test.problem) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.problem)
		}
	}
}

func FuzzCheckDocument(f *testing.F) {
	for _, seed := range []string{`{}`, `{"a":"\ud83d\ude00"}`, `[1e5,"\u0000"]`, `"\`, `"\u12`, "-", "1e", `{"a":1}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		checkDocument(document) // must not panic, whatever it is given
	})
}
