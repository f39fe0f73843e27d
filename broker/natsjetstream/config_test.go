package natsjetstream

import (
	"crypto/tls"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/relay"
)

func TestSubjects(t *testing.T) {
	t.Parallel()
	for subject, good := range map[string]bool{
		"orders": true, "orders.placed": true, "a-b_c.D1": true, "Grüße.東京": true, "a*b": true,
		"": false, ".orders": false, "orders.": false, "a..b": false, "a b": false, "a\tb": false, "a\r\nPUB b": false,
		"orders.*": false, ">": false, "orders.>": false, "a\x00b": false, "a\u00a0b": false,
	} {
		if err := checkSubject(subject); (err == nil) != good {
			t.Errorf("checkSubject(%q) = %v", subject, err)
		}
	}
}

func TestConfigIsRefusedAllAtOnce(t *testing.T) {
	t.Parallel()
	err := Config{
		Prefix: "a b.", Subject: func(*relay.Message) string { return "" },
		MaxPending: -1, AckTimeout: -time.Second, Streams: map[string]string{"orders": ""},
	}.validate()
	for _, want := range []string{"Prefix or Subject", "no spaces", "MaxPending", "AckTimeout", `Streams["orders"]`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s: %v", want, err)
		}
	}
	if err := (Config{}).validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

func TestNewRefusesAConnectionThatBuffers(t *testing.T) {
	t.Parallel()
	if _, err := New(nil, Config{}); err == nil {
		t.Error("without a connection New must refuse")
	}
	if _, err := New(&nats.Conn{Opts: nats.GetDefaultOptions()}, Config{}); err == nil || !strings.Contains(err.Error(), "ReconnectBufSize(-1)") {
		t.Errorf("a connection that buffers: %v", err)
	}
}

func TestHeadersComeBackAsTheyWere(t *testing.T) {
	t.Parallel()
	sent := map[string]string{
		"plain": "value", "empty": "", "spaces": "  x ", "break": "a\r\nNats-Rollup: all", "word": "=?utf-8?b?eA==?=",
		"half": "=?utf-8?b?", "unicode": "Grüße 東京", "bytes": "\xff\x00", "no-break space": "\u00a0x",
	}
	header, err := headers(sent)
	if err != nil {
		t.Fatal(err)
	}
	header.Set("Nats-Msg-Id", "1")
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
		"Euro \u20ac \U0001f600": "Euro%20%E2%82%AC%20%F0%9F%98%80", `"100%"`: "%22100%25%22", "order/7": "order/7", "=?utf-8?b?eA==?=": "=?utf-8?b?eA==?=",
		"a\r\nNats-Rollup: all": "a%0D%0ANats-Rollup:%20all", "": "",
	} {
		attributes := map[string]string{"ce-specversion": "1.0", "ce-subject": value, "other": value}
		header, err := headers(attributes)
		if err != nil || header["ce-subject"][0] != want {
			t.Errorf("%q is sent as %q, want %q: %v", value, header["ce-subject"], want, err)
		}
		if got := Attributes(header); !maps.Equal(got, attributes) {
			t.Errorf("%q came back as %v", value, got)
		}
		delete(attributes, "ce-specversion")
		if header, _ = headers(attributes); header["ce-subject"][0] != header["other"][0] {
			t.Errorf("%q of an envelope is sent as %q", value, header["ce-subject"])
		}
	}
	if got := Attributes(nats.Header{"ce-specversion": {"1.0"}, "ce-subject": {"100%"}})["ce-subject"]; got != "100%" {
		t.Errorf("what nobody encoded came back as %q", got)
	}
}

// TestInstructionsAreRefused: a header from an INSERT by hand must not tell the server what to do.
func TestInstructionsAreRefused(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"Nats-Rollup", "nats-msg-id", "NATS-Expected-Last-Sequence"} {
		if _, err := headers(map[string]string{name: "all"}); err == nil {
			t.Errorf("the attribute %s was let through", name)
		}
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		servers string
		tls     *tls.Config
		secure  bool
		refused string
	}{
		{name: "this machine", servers: "nats://127.0.0.1:4222"},
		{name: "this machine by name", servers: "localhost:4222"},
		{name: "this machine, version 6", servers: "nats://[::1]:4222"},
		{name: "elsewhere", servers: "nats://nats.example.com:4222", secure: true},
		{name: "elsewhere without a scheme", servers: "nats.example.com", secure: true},
		{name: "one of two elsewhere", servers: "nats://127.0.0.1:4222, nats://10.0.0.1:4222", secure: true},
		{name: "a name that only begins like ours", servers: "nats://localhost.example.com", secure: true},
		{name: "with an authority", servers: "tls://nats.example.com", tls: &tls.Config{ServerName: "x"}, secure: true},
		{name: "unverified", servers: "tls://nats.example.com", tls: &tls.Config{InsecureSkipVerify: true}, refused: "InsecureSkipVerify"},
		{name: "plain web socket", servers: "ws://nats.example.com", refused: "wss://"},
		{name: "no server", servers: "nats://", refused: "a server is a URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := nats.Options{Url: c.servers, TLSConfig: c.tls}
			err := secure(&settings)
			if c.refused != "" {
				if err == nil || !strings.Contains(err.Error(), c.refused) {
					t.Errorf("want a refusal with %q, got %v", c.refused, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if settings.Secure != c.secure || c.secure && settings.TLSConfig == nil {
				t.Errorf("secure is %v, want %v", settings.Secure, c.secure)
			}
		})
	}
}

func TestPasswordsAreNotQuoted(t *testing.T) {
	t.Parallel()
	_, err := Connect("nats://relay:hunter2@[broken")
	if err == nil || strings.Contains(err.Error(), "hunter2") {
		t.Errorf("the error is %v", err)
	}
}

// A server that is away at the start is waited for; what it refuses for now is the topics'.
func TestNobodyAnswersAtTheStart(t *testing.T) {
	t.Parallel()
	for name, connect := range map[string]func(string, ...nats.Option) (*nats.Conn, error){"Connect": Connect, "ConnectInsecure": ConnectInsecure} {
		conn, err := connect("nats://127.0.0.1:1")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		publisher, err := New(conn, Config{})
		if err != nil {
			t.Fatal(err)
		}
		var route *relay.RouteError
		if err := publisher.Publish(t.Context(), &relay.Message{Topic: "orders"}); !errors.As(err, &route) {
			t.Errorf("%s: a publish without a server: %v", name, err)
		}
		if err := publisher.Close(); err != nil {
			t.Error(err)
		}
	}
}
