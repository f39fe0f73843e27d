package natsjetstream

import (
	"context"
	"crypto/tls"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/publish"
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

func TestPublisherConfigIsCheckedAllAtOnce(t *testing.T) {
	t.Parallel()
	err := PublisherConfig{
		Prefix: "a b.", Subject: func(*publish.Message) string { return "" },
		MaxPending: -1, AckTimeout: -time.Second, Streams: map[string]string{"orders": ""},
	}.validate()
	for _, want := range []string{"Prefix or Subject", "no spaces", "MaxPending", "AckTimeout", `Streams["orders"]`} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error does not mention %s: %v", want, err)
		}
	}
	if err := (PublisherConfig{}).validate(); err != nil {
		t.Errorf("the zero value: %v", err)
	}
}

func TestNewRejectsAConnectionThatBuffers(t *testing.T) {
	t.Parallel()
	if _, err := NewPublisher(nil, PublisherConfig{}); err == nil {
		t.Error("without a connection New must refuse")
	}
	if _, err := NewPublisher(&nats.Conn{Opts: nats.GetDefaultOptions()}, PublisherConfig{}); err == nil ||
		!strings.Contains(err.Error(), "ReconnectBufSize(-1)") {
		t.Errorf("a connection that buffers: %v", err)
	}
}

func TestTLS(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		servers string
		tls     *tls.Config
		secure  bool
		problem string
	}{
		{name: "this machine", servers: "nats://127.0.0.1:4222"},
		{name: "this machine by name", servers: "localhost:4222"},
		{name: "this machine, version 6", servers: "nats://[::1]:4222"},
		{name: "elsewhere", servers: "nats://nats.example.com:4222", secure: true},
		{name: "elsewhere without a scheme", servers: "nats.example.com", secure: true},
		{name: "one of two elsewhere", servers: "nats://127.0.0.1:4222, nats://10.0.0.1:4222", secure: true},
		{name: "a name that only begins like ours", servers: "nats://localhost.example.com", secure: true},
		{name: "with an authority", servers: "tls://nats.example.com", tls: &tls.Config{ServerName: "x"}, secure: true},
		{
			name: "unverified", servers: "tls://nats.example.com", tls: &tls.Config{InsecureSkipVerify: true},
			problem: "InsecureSkipVerify",
		},
		{name: "plain web socket", servers: "ws://nats.example.com", problem: "wss://"},
		{name: "no server", servers: "nats://", problem: "a server is a URL"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			settings := nats.Options{Url: c.servers, TLSConfig: c.tls}
			err := secure(&settings)
			if c.problem != "" {
				if err == nil || !strings.Contains(err.Error(), c.problem) {
					t.Errorf("want a refusal with %q, got %v", c.problem, err)
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
	for name, connect := range map[string]func(string, ...nats.Option) (*nats.Conn, error){
		"Connect": Connect, "ConnectInsecure": ConnectInsecure,
	} {
		conn, err := connect("nats://127.0.0.1:1")
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		publisher, err := NewPublisher(conn, PublisherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		var topicFault *publish.TopicError
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		if err := publisher.Publish(ctx, &publish.Message{Topic: "orders"}); !errors.As(err, &topicFault) {
			t.Errorf("%s: a publish without a server: %v", name, err)
		}
		cancel()
		if err := publisher.Close(); err != nil {
			t.Error(err)
		}
	}
}
