package jsonview

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"strings"
	"testing"
)

// text is what a person sees.
func text(t *testing.T, raw string, mask ...string) string {
	t.Helper()
	shown := string(HTML(json.RawMessage(raw), mask, nil))
	return html.UnescapeString(regexp.MustCompile(`<[^>]*>`).ReplaceAllString(shown, ""))
}

func TestItIsShownAsItStands(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`{"n":12345678901234567890123,"e":1e400,"z":-0.10}`, `{"b":1,"a":2,"b":3}`, `[]`, `{}`, `null`,
		`"<script>alert(1)</script>"`,
		`{"<b>":"&amp;\u2028"}`, `[[[1,2],[true,false,null]]]`, `"line\nbreak"`,
	} {
		var want, got strings.Builder
		for _, r := range raw {
			if r != ' ' {
				want.WriteRune(r)
			}
		}
		for _, r := range text(t, raw) {
			if r != '\n' && r != ' ' {
				got.WriteRune(r)
			}
		}
		if got.String() != want.String() {
			t.Errorf("%s is shown as %s", raw, got.String())
		}
	}
}

func TestMaskedValuesAreNotThere(t *testing.T) {
	t.Parallel()
	raw := `{"data":{"email":"a@b","cards":[{"no":"4711"},{"no":"4712"}],"a/b":{"x":"deep"},"keep":"seen"}}`
	shown := string(HTML(json.RawMessage(raw), []string{"/data/email", "/data/cards/*/no", "/data/a~1b"}, nil))
	for _, secret := range []string{"a@b", "4711", "4712", "deep"} {
		if strings.Contains(shown, secret) {
			t.Errorf("%s is shown", secret)
		}
	}
	if !strings.Contains(shown, "seen") {
		t.Error("what is not masked is missing")
	}
	shown = string(HTML(json.RawMessage(`{"data":{"email":"a@b"`), []string{"/data/email"}, nil))
	if strings.Contains(shown, "a@b") {
		t.Errorf("what cannot be read is shown: %s", shown)
	}
}

func TestNothingIsMarkup(t *testing.T) {
	t.Parallel()
	for _, raw := range []string{
		`"<img src=x onerror=alert(1)>"`, `{"<img src=x onerror=alert(1)>":1}`, `<img src=x onerror=alert(1)>`,
	} {
		if shown := string(HTML(json.RawMessage(raw), nil, nil)); strings.Contains(shown, "<img") {
			t.Errorf("%s is markup: %s", raw, shown)
		}
	}
}

func TestWrongValuesAreMarked(t *testing.T) {
	t.Parallel()
	shown := string(HTML(json.RawMessage(`{"a":[1,2]}`), nil, []string{"/a/1"}))
	if !strings.Contains(shown, `<mark><span class="jn">2`) {
		t.Error(shown)
	}
}

// TestTheLargestAreBounded: whatever a producer has written, the view is one that a browser can show.
func TestTheLargestAreBounded(t *testing.T) {
	t.Parallel()
	ones := strings.TrimSuffix(strings.Repeat("1,", 500_000), ",")
	for name, raw := range map[string]string{
		"many values": "[" + ones + "]",
		"deep values": strings.Repeat("[", 199) + ones + strings.Repeat("]", 199),
		"deeper":      strings.Repeat("[", 300) + ones + strings.Repeat("]", 300),
		"one string":  `"` + strings.Repeat("<", 9<<20) + `"`,
		"no JSON":     strings.Repeat("<", 9<<20),
		"many keys":   `{"` + strings.Repeat(`a":1,"`, 500_000) + `":1}`,
	} {
		shown := string(HTML(json.RawMessage(raw), nil, []string{"/0"}))
		if len(shown) > 5*longest || strings.Count(shown, "<mark>") != strings.Count(shown, "</mark>") ||
			strings.Count(shown, "<span") != strings.Count(shown, "</span>") {
			t.Errorf("%s: %d bytes of HTML, or a tag that does not end", name, len(shown))
		}
		more := strings.Contains(shown, fmt.Sprintf("of these %d bytes the rest is not shown", len(raw)))
		if all := name == "deeper"; more == all { // that is shown as it is stored, and fits
			t.Errorf("%s: it says that there is more: %v", name, more)
		}
	}
	masked := string(HTML(json.RawMessage(`{"a":[`+ones+`],"b":2}`), []string{"/a"}, nil))
	if len(masked) > 200 || !strings.Contains(masked, "2</span>") {
		t.Errorf("what is masked has no length: %d bytes", len(masked))
	}
}

func TestHides(t *testing.T) {
	t.Parallel()
	mask := []string{"/data/pin", "/data/customer/email", "/data/list/*/iban", "/data/a~1b", "/eventId"}
	for path, hidden := range map[string]bool{
		"data": true, "data pin": true, "data pin deeper": true, "data customer": true, "data customer name": false,
		"data name": false, "data list": true, "data list 0 iban": true, "data list 0 name": false, "data a/b": true,
	} {
		if Hides(mask, strings.Fields(path)) != hidden {
			t.Errorf("%s: hidden is not %v", path, hidden)
		}
	}
}
