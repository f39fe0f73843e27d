package leaks_test

import (
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/proof/leaks"
)

// Every spelling is found, in the middle of other text, and nothing where there is nothing.
func TestEverySpellingIsFound(t *testing.T) {
	t.Parallel()
	c, other := leaks.NewCanary("password"), leaks.NewCanary("other")
	searcher := leaks.NewSearcher([]leaks.Canary{c, other})
	every := func(format string) string {
		var text strings.Builder
		for _, b := range []byte(c.Text) {
			fmt.Fprintf(&text, format, b)
		}
		return text.String()
	}
	quoted, err := json.Marshal(`<"` + c.Text + `">`)
	if err != nil {
		t.Fatal(err)
	}
	reversed := []byte(c.Text)
	slices.Reverse(reversed)
	spellings := map[string]string{
		"plain": c.Text, "upper case": strings.ToUpper(c.Text), "a beginning": c.Text[:15], "an end": c.Text[7:],
		"of a URL": "postgres://relay:" + url.QueryEscape("ä/"+c.Text+"%") + "@db/x", "JSON": string(quoted),
		"Go":  strconv.Quote("\n" + c.Text),
		"hex": hex.EncodeToString([]byte("ab" + c.Text)), "upper hex": strings.ToUpper(hex.EncodeToString([]byte(c.Text))),
		"percent": every("%%%02X"), "JSON escapes": every(`\u%04x`), "octal": every(`\%03o`),
		"a printed []byte": fmt.Sprint([]byte("x" + c.Text + "y")),
		"reversed":         string(reversed), "bytea": `\x` + hex.EncodeToString([]byte(`{"a":"`+c.Text+`"}`)),
	}
	for before := range 4 {
		text := strings.Repeat("u", before) + c.Text + "tail"
		spellings[fmt.Sprintf("base64 behind %d", before)] = base64.StdEncoding.EncodeToString([]byte(text))
		spellings[fmt.Sprintf("URL base64 behind %d", before)] = base64.RawURLEncoding.EncodeToString([]byte(text))
	}
	for name, text := range spellings {
		for _, surrounded := range []string{
			text, "level=INFO msg=\"" + text + "\"\n", strings.Repeat("words ", 10_000) + text,
		} {
			hits := searcher.Search("here", []byte(surrounded))
			if len(hits) == 0 || hits[0].Canary != "password" ||
				slices.ContainsFunc(hits, func(h leaks.Hit) bool { return h.Canary == "other" }) {
				t.Errorf("%s: %v", name, hits)
			}
		}
	}
	for _, innocent := range []string{
		"", "password", c.Text[:10], leaks.NewCanary("another").Text, strings.Repeat("ab12", 10_000),
	} {
		if hits := searcher.Search("here", []byte(innocent)); len(hits) > 0 {
			t.Errorf("%.40q: %v", innocent, hits)
		}
	}
}

// A hit is counted once for a place, and each kind keeps its books.
func TestLedger(t *testing.T) {
	t.Parallel()
	c := leaks.NewCanary("payload")
	for _, kind := range leaks.Kinds() {
		ledger := leaks.NewLedger(leaks.NewSearcher([]leaks.Canary{c}))
		ledger.Look(kind, "a", []byte("nothing"))
		ledger.Look(kind, "a", []byte("it is "+c.Text))
		ledger.Look(kind, "a", []byte("it is "+c.Text))
		ledger.Look(kind, "b", []byte("it is "+c.Text))
		if hits := ledger.Hits(); len(hits) != 2 ||
			!strings.Contains(hits[0].String(), "payload (plain) in "+string(kind)+": a") {
			t.Errorf("%s: %v", kind, hits)
		}
		if ledger.Locations(kind) != 2 || ledger.Bytes(kind) != 7+3*(6+22) {
			t.Errorf("%s: %d places, %d bytes", kind, ledger.Locations(kind), ledger.Bytes(kind))
		}
	}
}
