package corpus

import (
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"
)

const goValue = "a Go value"

// number is a payload with this number in it.
func number(literal string) func(*Given) { return raw(`{"n":` + literal + `}`) }

// nested is a document this many levels deep, objects and arrays in turn.
func nested(levels int) string {
	var open, closing strings.Builder
	for level := range levels {
		if level%2 == 0 {
			open.WriteString(`{"a":`)
			closing.WriteByte('}')
		} else {
			open.WriteByte('[')
			closing.WriteByte(']')
		}
	}
	tail := []byte(closing.String())
	for i, j := 0, len(tail)-1; i < j; i, j = i+1, j-1 {
		tail[i], tail[j] = tail[j], tail[i]
	}
	return open.String() + "1" + string(tail)
}

// manyKeys is an object with this many keys.
func manyKeys(n int) string {
	var object strings.Builder
	for i := range n {
		fmt.Fprintf(&object, `,"%d":0`, i)
	}
	return "{" + strings.TrimPrefix(object.String(), ",") + "}"
}

// jsonInputs are about the grammar, about what it allows and nobody can read, and about what Go values
// turn into.
func jsonInputs() []Input {
	return inGroup("json", append(append(grammarInputs(), numberInputs()...), shapeInputs()...)...)
}

func grammarInputs() []Input {
	return []Input{
		rejected("trailing comma in an object", "data", raw(`{"a":1,}`)),
		rejected("trailing comma in an array", "data", raw(`{"a":[1,]}`)),
		rejected("leading comma", "data", raw(`{,"a":1}`)),
		rejected("two documents", "data", raw(`{} {}`)),
		rejected("two documents in lines", "data", raw("{}\n{}")),
		rejected("text behind the document", "data", raw(`{} `+Canary)),
		rejected("line comment", "data", raw("{} // "+Canary)),
		rejected("block comment", "data", raw(`{/* `+Canary+` */}`)),
		rejected("single quotes", "data", raw(`{'a':1}`)),
		rejected("key without quotes", "data", raw(`{a:1}`)),
		rejected("key without value", "data", raw(`{"a"}`)),
		rejected("colon missing", "data", raw(`{"a" 1}`)),
		rejected("comma missing", "data", raw(`{"a":1 "b":2}`)),
		rejected("string without an end", "data", raw(`{"a":"`+Canary)),
		rejected("object without an end", "data", raw(`{"a":1`)),
		rejected("one bracket too many", "data", raw(`{}}`)),
		rejected("brackets crossed", "data", raw(`{"a":[}]`)),
		rejected("unknown escape", "data", text(`\x41`)),
		rejected("short unicode escape", "data", text(`\u12`)),
		rejected("unicode escape that is not hexadecimal", "data", text(`\u12zz`)),
		rejected("backslash at the end", "data", raw(`{"a":"\`)),
		rejected("literal in capitals", "data", raw(`{"a":True}`)),
		rejected("undefined", "data", raw(`{"a":undefined}`)),
		rejected("form feed as white space", "data", raw("\f{}")),
		rejected("no-break space as white space", "data", raw("\u00a0{}")),
		stored("every white space that is allowed", raw(" \t\r\n{ \t\r\n\"a\" \t\r\n: \t\r\n1 \t\r\n} \t\r\n")),
		stored("every escape that is allowed", text(`\"\\\/\b\f\n\r\t\u0041`)),
		stored("same key twice", raw(`{"a":1,"a":2}`)),
		stored("same key twice, once escaped", raw(`{"a":1,"\u0061":2}`)),
		stored("keys out of order", raw(`{"z":1,"a":2,"m":3}`)),
		stored("empty key", raw(`{"":1}`)),
		stored("__proto__", raw(`{"__proto__":{"admin":true},"constructor":{"prototype":{}}}`)),
		stored("brackets inside a string", text(strings.Repeat("[{", 20_000))),
		stored("colons inside a string", text(strings.Repeat(`\":`, 20_000))),
		stored("huge number inside a string", text(" 1e131071 "+strings.Repeat("9", 100))),
		stored("string that looks like the end of the envelope", raw(`{"a":"\"}}","b":{"c":"}"}}`)),
	}
}

func numberInputs() []Input {
	digits := func(n int) string { return strings.Repeat("7", n) }
	return []Input{
		rejected("number of 131,071 digits in nine bytes", "data", number("1e131071"), "308"),
		rejected("number beyond a float", "data", number("1e400"), "308"),
		rejected("exponent 309", "data", number("1e309"), "308"),
		rejected("exponent -309", "data", number("1e-309"), "308"),
		rejected("exponent 1000 in capitals", "data", number("1E+1000"), "308"),
		rejected("exponent that overflows an int", "data", number("1e99999999999999999999"), "308"),
		rejected("exponent 309 behind zeros", "data", number("1e0000000309"), "308"),
		stored("exponent 308", number("1e308")),
		stored("exponent -308", number("1E-308")),
		stored("exponent with zeros in front", number("1e+0005")),
		stored("integer of 20 digits", number(digits(20))),
		stored("number of 40 digits", number(digits(40))),
		rejected("number of 41 digits", "data", number(digits(41)), "41", "40"),
		stored("number of 40 digits with a point", number(digits(20)+"."+digits(20))),
		rejected("number of 41 digits with a point", "data", number(digits(20)+"."+digits(21)), "41", "40"),
		rejected("number of 41 digits in an array", "data", raw(`{"n":[1,-`+digits(41)+`]}`), "41", "40"),
		rejected("exponent of 41 digits", "data", number("1e"+strings.Repeat("0", 41)+"1")),
		rejected("number of a million digits", "data", number(digits(1_000_000)), "1000000", "40"),
		stored("negative zero", number("-0")),
		stored("negative zero with a point", number("-0.0e-0")),
		stored("beyond 2^53", number("9007199254740993")),
		stored("2^63 and 2^64", raw(`{"n":[9223372036854775808,18446744073709551616]}`)),
		stored("1.0 and 1", raw(`{"n":[1.0,1,1e0,10e-1]}`)),
		rejected("NaN", "data", number("NaN")),
		rejected("Infinity", "data", number("Infinity")),
		rejected("-Infinity", "data", number("-Infinity")),
		rejected("plus sign", "data", number("+1")),
		rejected("leading zero", "data", number("01")),
		rejected("point in front", "data", number(".5")),
		rejected("point at the end", "data", number("1.")),
		rejected("hexadecimal", "data", number("0x10")),
		rejected("underscore", "data", number("1_000")),
		rejected("minus alone", "data", number("-")),
		rejected("exponent alone", "data", number("1e")),
	}
}

func shapeInputs() []Input {
	type loop struct{ Next *loop }
	cycle := &loop{}
	cycle.Next = cycle
	var nothing *struct{}
	return []Input{
		rejected("null", "data", raw("null")),
		rejected("true", "data", raw("true")),
		rejected("empty string", "data", raw(`""`)),
		rejected("string", "data", raw(`"`+Canary+`"`)),
		rejected("empty array", "data", raw("[]")),
		rejected("array of objects", "data", raw(`[{"a":"`+Canary+`"}]`)),
		rejected("white space only", "data", raw(" \n\t ")),
		stored("10 levels", raw(nested(10))),
		stored("64 levels", raw(nested(64))),
		stored("64 levels of objects", raw(strings.Repeat(`{"a":`, 64)+"1"+strings.Repeat("}", 64))),
		rejected("65 levels", "data", raw(nested(65)), "64"),
		rejected("65 levels of objects", "data", raw(strings.Repeat(`{"a":`, 65)+"1"+strings.Repeat("}", 65)), "64"),
		rejected("128 levels", "data", raw(nested(128)), "64"),
		rejected("10,000 levels", "data", raw(nested(10_000))),
		rejected("20,000 levels", "data", raw(nested(20_000))),
		rejected("20,000 levels, only opened", "data", raw(strings.Repeat(`{"a":`, 20_000))),
		stored("10,000 keys", raw(manyKeys(10_000))),
		rejected("10,001 keys", "data", raw(manyKeys(10_001)), "10000"),
		rejected("half a million keys", "data", both(maxBytes(9<<20), raw(manyKeys(500_000))), "10000"),
		rejected("key of 1 MiB", "data", raw(`{"`+strings.Repeat("k", 1<<20)+`":1}`), "1048576"),
		stored("key of 512 KiB", raw(`{"`+strings.Repeat("k", 1<<19)+`":1}`)),
		stored("100,000 elements", raw(`{"a":[`+strings.Repeat("0,", 99_999)+`0]}`)),
		rejected("nil raw message", "data", typed(json.RawMessage(nil))),
		rejected("nil pointer", "data", typed(nothing)),
		rejected("nil map", "data", typed(map[string]int(nil))),
		rejected("nil", "data", typed(nil)),
		stored("empty struct", typed(struct{}{})),
		stored("HTML in a Go struct", typed(map[string]string{"a": "<b>&amp;</b>"})),
		rejected("NaN in a Go struct", "data", typed(map[string]float64{"n": math.NaN()})).goOnly(goValue),
		rejected("infinity in a Go struct", "data", typed(map[string]float64{"n": math.Inf(1)})).goOnly(goValue),
		rejected("channel in a Go struct", "data", typed(map[string]any{"c": make(chan int)})).goOnly(goValue),
		rejected("function in a Go struct", "data", typed(map[string]any{"f": func() {}})).goOnly(goValue),
		rejected("cycle of Go pointers", "data", typed(cycle)).goOnly(goValue),
		rejected("MarshalJSON that fails", "data", typed(failing{})).goOnly(goValue),
		rejected("MarshalJSON that is not JSON", "data", typed(lying{})).goOnly(goValue),
		rejected("json.Number beyond a float", "data", typed(map[string]json.Number{"n": "1e400"}), "308").goOnly(goValue),
		rejected("json.Number that is none", "data", typed(map[string]json.Number{"n": Canary})).goOnly(goValue),
		rejected("Go slice", "data", typed([]string{Canary})).goOnly(goValue),
	}
}

type failing struct{}

func (failing) MarshalJSON() ([]byte, error) { return nil, errors.New(Canary) }

type lying struct{}

func (lying) MarshalJSON() ([]byte, error) { return []byte(`{"a":` + Canary), nil }
