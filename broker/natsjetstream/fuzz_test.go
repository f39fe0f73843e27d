package natsjetstream

import (
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// FuzzHeaderEncode: an attribute that is not refused comes back from the wire as it was, and is no instruction to the
// server. Names that are no HTTP tokens are left to the client, which refuses the message.
func FuzzHeaderEncode(f *testing.F) {
	for _, seed := range []string{
		"", " ", "=?utf-8?b?eA==?=", "a\r\nb: c", "\xff", "\u0085", "a\x00b", "Nats-Rollup", "\u2028", "a\rb", "a: b",
	} {
		f.Add("h", seed)
		f.Add(seed, "v")
	}
	f.Fuzz(func(t *testing.T, name, value string) {
		header, err := encodeHeader(map[string]string{name: value})
		instruction := len(name) >= 5 && strings.EqualFold(name[:5], "Nats-")
		if (err != nil) != instruction {
			t.Fatalf("%q: %v", name, err)
		}
		if err != nil || !isToken(name) {
			return
		}
		encoded := header[name][0]
		if strings.ContainsAny(encoded, "\r\n") || strings.TrimSpace(encoded) != encoded {
			t.Fatalf("%q is sent as %q, which the client would change", value, encoded)
		}
		read, err := nats.DecodeHeadersMsg([]byte("NATS/1.0\r\n" + name + ": " + encoded + "\r\n\r\n"))
		if err != nil {
			t.Fatalf("%q: %q cannot be read: %v", name, encoded, err)
		}
		got := Attributes(read)
		if has, there := got[name]; !there || has != value || len(got) != 1 {
			t.Fatalf("%q: %q came back as %q", name, value, got)
		}
	})
}

// isToken tells what a name of a header may be.
func isToken(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !strings.ContainsRune("!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz", r)
	})
}

// FuzzCloudEventEncode: an attribute of a CloudEvent is printable ASCII on the wire, and comes back as it was.
func FuzzCloudEventEncode(f *testing.F) {
	for _, seed := range []string{
		"", " ", "%", "%41", "\"", "Euro \u20ac \U0001f600", "a\r\nb: c", "\xff", "=?utf-8?b?eA==?=", "+", "a/b~",
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, value string) {
		header, err := encodeHeader(map[string]string{"ce-specversion": "1.0", "ce-subject": value})
		if err != nil {
			t.Fatal(err)
		}
		encoded := header["ce-subject"][0]
		if strings.ContainsFunc(encoded, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' }) {
			t.Fatalf("%q is sent as %q", value, encoded)
		}
		read, err := nats.DecodeHeadersMsg([]byte("NATS/1.0\r\nce-specversion: 1.0\r\nce-subject: " + encoded + "\r\n\r\n"))
		if err != nil {
			t.Fatalf("%q cannot be read: %v", encoded, err)
		}
		if got := Attributes(read)["ce-subject"]; got != value {
			t.Fatalf("%q came back as %q", value, got)
		}
	})
}
