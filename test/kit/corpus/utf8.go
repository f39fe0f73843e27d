package corpus

import (
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

// text is a payload with this between the quotes of a string, as it is written there.
func text(inside string) func(*Given) { return raw(`{"t":"` + Canary + inside + `"}`) }

// key is a payload with this between the quotes of a key.
func key(inside string) func(*Given) { return raw(`{"` + Canary + inside + `":1}`) }

// utf8Inputs are about bytes that are not text, and text that is not harmless.
func utf8Inputs() []Input {
	const broken = "broken\xff"
	horse := "\U0001f40e"
	inputs := []Input{
		rejected("NUL byte in a string", "data", text("\x00")),
		rejected("NUL escape in a string", "data", text(`\u0000`)),
		rejected("NUL escape in a key", "data", key(`\u0000`)),
		rejected("NUL escape behind an escaped backslash", "data", text(`\\\u0000`)),
		stored("backslash, then the text u0000", text(`\\u0000`)),
		rejected("overlong slash", "data", text("\xc0\xaf")),
		rejected("overlong NUL", "data", text("\xc0\x80")),
		rejected("overlong in three bytes", "data", text("\xe0\x80\xaf")),
		rejected("overlong in four bytes", "data", text("\xf0\x80\x80\xaf")),
		rejected("byte FF", "data", text("\xff")),
		rejected("byte FE", "data", text("\xfe")),
		rejected("continuation without a start", "data", text("\x80")),
		rejected("start without a continuation", "data", text("\xe2\x82")),
		rejected("surrogate encoded as UTF-8", "data", text("\xed\xa0\x80")),
		rejected("surrogate pair encoded as UTF-8", "data", text("\xed\xa0\xbd\xed\xb0\x8e")),
		rejected("beyond the last code point", "data", text("\xf4\x90\x80\x80")),
		rejected("five-byte form", "data", text("\xf8\x88\x80\x80\x80")),
		rejected("Latin-1", "data", text("caf\xe9")),
		rejected("UTF-16", "data", raw("\xff\xfe{\x00}\x00")),
		rejected("high surrogate alone", "data", text(`\ud83d`)),
		rejected("low surrogate alone", "data", text(`\udc0e`)),
		rejected("surrogates reversed", "data", text(`\udc0e\ud83d`)),
		rejected("high surrogate twice", "data", text(`\ud83d\ud83d`)),
		rejected("high surrogate, then a letter", "data", text(`\ud83dx`)),
		rejected("high surrogate, then another escape", "data", text(`\ud83d\n`)),
		rejected("high surrogate, then an escaped letter", "data", text(`\ud83d\u0041`)),
		rejected("high surrogate at the end of a key", "data", key(`\ud83d`)),
		stored("surrogate pair", text(`\ud83d\udc0e`)),
		stored("surrogate pair in capitals", text(`\uD83D\uDC0E`)),
		stored("surrogate pair in a key", key(`\ud83d\udc0e`)),
		stored("surrogate pair and the character itself", text(`\ud83d\udc0e`+horse)),
		rejected("byte order mark before the document", "data", raw("\ufeff{}")),
		stored("byte order mark in a string", text("\ufeff")),
		stored("line and paragraph separator", text("\u2028\u2029")),
		stored("right-to-left override", text("\u202egnp.exe")),
		stored("ten thousand combining marks", text("a"+strings.Repeat("\u0301", 10_000))),
		stored("zero-width joiners", text("\u200d\u200b\u2060")),
		stored("four-byte emoji up to the limit", func(g *Given) {
			StoredSize(outbox.MaxPayloadBytes - 4)(g)
			raw(strings.TrimSuffix(string(g.Data()), `"}`) + horse + `"}`)(g)
		}),
		stored("replacement character", text("\ufffd")),
		stored("replacement character escaped", text(`\ufffd`)),
		stored("noncharacters", text("\uffff\ufdd0\U0010ffff")),
		stored("delete and C1 controls in a string", text("\x7f\u0080\u0085\u009f")),
		rejected("raw tab in a string", "data", text("\t")),
		rejected("raw newline in a string", "data", text("\n")),
		stored("keys that differ by normalisation only", raw("{\"\u00e9\":1,\"e\u0301\":2}")),
		stored("two spellings of one character", raw("{\"a\":\"\\u00e9\",\"b\":\"\u00e9\"}")),
		rejected("broken string in a Go struct", "data", typed(map[string]string{"t": Canary + broken})).goOnly("a Go value"),
		rejected("broken key in a Go map", "data", typed(map[string]string{broken: Canary})).goOnly("a Go value"),
		stored("replacement character in a Go struct", typed(map[string]string{"t": "\ufffd"})),
		stored("text that looks like the escape, in a Go struct", typed(map[string]string{"t": `\ufffd`, `\ufffd`: "t"})),
		rejected("broken aggregate id", "aggregate_id", aggregateID(Canary+broken)),
		rejected("broken tenant id", "tenant_id", tenantID(Canary+broken)),
		rejected("broken dedupe key", "dedupe_key", dedupeKey(Canary+broken)),
		rejected("broken event type", "contract", eventType(broken)),
		rejected("broken header value",
			"headers", header("h", Canary+broken)).sqlMay("JSON has no broken strings: the driver repaired it"),
		rejected("broken header name", "headers", header(broken, Canary)),
		rejected("broken actor name",
			"actor", actor("user", "1", Canary+broken)).sqlMay("JSON has no broken strings: the driver repaired it"),
		rejected("aggregate id cut inside a character", "aggregate_id", aggregateID(Canary+horse[:3])),
		rejected("NUL in an aggregate id", "aggregate_id", aggregateID(Canary+"\x00")),
		rejected("NUL in a tenant id", "tenant_id", tenantID(Canary+"\x00")),
		rejected("NUL in a dedupe key", "dedupe_key", dedupeKey(Canary+"\x00")),
		rejected("NUL in a header value", "headers", header("h", Canary+"\x00")),
		rejected("next-line control in an aggregate id", "aggregate_id", aggregateID(Canary+"\u0085")),
		stored("right-to-left override in an aggregate id", aggregateID("\u202edi")),
		stored("combining marks in a dedupe key", dedupeKey("k"+strings.Repeat("\u0301", 200))),
	}
	return inGroup("utf8", inputs...)
}
