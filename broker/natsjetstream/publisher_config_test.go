package natsjetstream

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"net"
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
		"$JS.API.STREAM.DELETE.EVENTS": false, "$SYS.REQ.SERVER.PING": false, "_INBOX.x.y": false, "$JS": false,
		"orders.$JS": true, "$JSON": true, "_INBOXES": true,
	} {
		if err := CheckSubject(subject); (err == nil) != good {
			t.Errorf("CheckSubject(%q) = %v", subject, err)
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

// A server on this machine, which nobody had to prove to be, names another one that nobody had to either.
func TestServersThatOthersAnnounce(t *testing.T) {
	t.Parallel()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for conn, err := listener.Accept(); err == nil; conn, err = listener.Accept() {
			go announce(conn)
		}
	}()
	for name, connect := range map[string]func(string, ...nats.Option) (*nats.Conn, error){
		"Connect": Connect, "ConnectInsecure": ConnectInsecure,
	} {
		conn, err := connect("nats://" + listener.Addr().String())
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		if err := conn.FlushTimeout(time.Minute); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		if found := conn.DiscoveredServers(); len(found) > 0 || !conn.IsConnected() {
			t.Errorf("%s: %v joined the pool", name, found)
		}
		conn.Close()
	}
	for _, c := range []struct {
		servers string
		secure  bool
		forced  bool
	}{
		{"nats://127.0.0.1:4222", false, false},
		{"nats://127.0.0.1:4222", true, true},
		{"tls://127.0.0.1:4222", false, true},
		{"nats://127.0.0.1:4222, tls://localhost:4222", false, true},
		{"wss://localhost", false, true},
	} {
		if got := forcesTLS(&nats.Options{Url: c.servers, Secure: c.secure}); got != c.forced {
			t.Errorf("%s, %v: TLS is forced: %v", c.servers, c.secure, got)
		}
	}
}

// announce is a server that has nothing to offer but the name of another.
func announce(conn net.Conn) {
	defer func() { _ = conn.Close() }()
	_, _ = conn.Write([]byte(`INFO {"server_id":"x","version":"2.12.0","proto":1,"headers":true,"max_payload":1048576,` +
		`"connect_urls":["192.0.2.1:4222"]}` + "\r\n"))
	lines := bufio.NewScanner(conn)
	for lines.Scan() {
		if lines.Text() == "PING" {
			_, _ = conn.Write([]byte("PONG\r\n"))
		}
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
