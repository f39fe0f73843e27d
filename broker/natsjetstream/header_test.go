package natsjetstream

import (
	"maps"
	"strings"
	"testing"
)

func TestHeadersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	sent := map[string]string{
		"plain": "value", "empty": "", "spaces": "  x ", "break": "a\r\nNats-Rollup: all", "word": "=?utf-8?b?eA==?=",
		"half": "=?utf-8?b?", "unicode": "Grüße 東京", "bytes": "\xff\x00", "no-break space": "\u00a0x",
	}
	header, err := encodeHeader(sent)
	if err != nil {
		t.Fatal(err)
	}
	header["Nats-Msg-Id"] = []string{"1"}
	for name, values := range header {
		if strings.ContainsAny(values[0], "\r\n\x00") || strings.TrimSpace(values[0]) != values[0] {
			t.Errorf("the header %s has %q, which the client would change", name, values[0])
		}
	}
	got := Attributes(header)
	for name, value := range sent {
		if got[name] != value {
			t.Errorf("%s was %q and is %q", name, value, got[name])
		}
	}
	if len(got) != len(sent) {
		t.Errorf("%d attributes became %d", len(sent), len(got))
	}
}

// The binding's own example, and what else it names. Without ce-specversion the message is no CloudEvent, and such a
// header is like any other.
func TestCloudEventsArePercentEncoded(t *testing.T) {
	t.Parallel()
	for value, want := range map[string]string{
		"Euro \u20ac \U0001f600": "Euro%20%E2%82%AC%20%F0%9F%98%80", `"100%"`: "%22100%25%22", "order/7": "order/7",
		"=?utf-8?b?eA==?=":      "=?utf-8?b?eA==?=",
		"a\r\nNats-Rollup: all": "a%0D%0ANats-Rollup:%20all", "": "",
	} {
		attributes := map[string]string{"ce-specversion": "1.0", "ce-subject": value, "other": value}
		header, err := encodeHeader(attributes)
		if err != nil || header["ce-subject"][0] != want {
			t.Errorf("%q is sent as %q, want %q: %v", value, header["ce-subject"], want, err)
		}
		if got := Attributes(header); !maps.Equal(got, attributes) {
			t.Errorf("%q came back as %v", value, got)
		}
		delete(attributes, "ce-specversion")
		if header, _ = encodeHeader(attributes); header["ce-subject"][0] != header["other"][0] {
			t.Errorf("%q of an envelope is sent as %q", value, header["ce-subject"])
		}
	}
	if got := Attributes(map[string][]string{"ce-specversion": {"1.0"}, "ce-subject": {"100%"}})["ce-subject"]; got !=
		"100%" {
		t.Errorf("what nobody encoded came back as %q", got)
	}
}

// TestInstructionsAreInvalid: a header from an INSERT by hand must not tell the server what to do.
func TestInstructionsAreInvalid(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Nats-Rollup", "nats-msg-id", "NATS-Expected-Last-Sequence"} {
		if _, err := encodeHeader(map[string]string{name: "all"}); err == nil {
			t.Errorf("the attribute %s was let through", name)
		}
	}
}
