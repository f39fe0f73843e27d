package proxy_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/torture/proxy"
)

// patience ends a wait that would never end; nothing needs nearly as long.
const patience = 2 * time.Minute

// echo is a server that says everything again, and writes down what it heard.
type echo struct {
	listener net.Listener
	heard    chan []byte // of each connection, when it has ended
}

func newEcho(t *testing.T) *echo {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	e := &echo{listener: listener, heard: make(chan []byte, 10)}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				var all bytes.Buffer
				_, _ = io.Copy(conn, io.TeeReader(conn, &all)) // until one of them hangs up
				e.heard <- all.Bytes()
			}()
		}
	}()
	return e
}

func newProxy(t *testing.T, e *echo) *proxy.Proxy {
	t.Helper()
	p, err := proxy.Listen(e.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Close)
	return p
}

// client is a connection through the proxy over which one word has gone.
func newClient(t *testing.T, p *proxy.Proxy) net.Conn {
	t.Helper()
	conn, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	say(t, conn, "hello")
	if got := read(t, conn, 5); got != "hello" {
		t.Fatalf("heard %q", got)
	}
	return conn
}

func say(t *testing.T, conn net.Conn, words string) {
	t.Helper()
	if _, err := conn.Write([]byte(words)); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, conn net.Conn, n int) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	words := make([]byte, n)
	got, err := io.ReadFull(conn, words)
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	return string(words[:got])
}

// ends tells what is heard until the connection ends.
func ends(t *testing.T, conn net.Conn) string {
	t.Helper()
	_ = conn.SetReadDeadline(time.Now().Add(patience))
	words, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatal("the connection does not end")
	}
	return string(words)
}

// receive waits for what somebody else found.
func receive[T any](t *testing.T, what string, from <-chan T) T {
	t.Helper()
	select {
	case found := <-from:
		return found
	case <-time.After(patience):
		t.Fatalf("%s: not in %s", what, patience)
		panic("unreachable")
	}
}

// begun cuts in the background, and tells how that ended.
func begun(t *testing.T, p *proxy.Proxy, cut proxy.Cut) <-chan bool {
	t.Helper()
	happened := make(chan bool, 1)
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	go func() { happened <- p.Cut(ctx, rand.New(rand.NewPCG(1, 1)), cut) }()
	return happened
}

func TestCut(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		cut   proxy.Cut
		heard string // by the client
		got   string // by the server, after hello
	}{
		{"to the client, at once", proxy.Cut{Way: proxy.ToClient}, "", "0123456789"},
		{"to the client, in the middle", proxy.Cut{Way: proxy.ToClient, After: 4}, "0123", "0123456789"},
		{"to the server, at once", proxy.Cut{Way: proxy.ToServer}, "", ""},
		{"to the server, in the middle", proxy.Cut{Way: proxy.ToServer, After: 4}, "", "0123"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			e := newEcho(t)
			p := newProxy(t, e)
			conn := newClient(t, p)
			happened := begun(t, p, c.cut)
			// The cut may be armed a little later than the words come, so they come until it was. Each is answered, or is
			// the last one.
			for done := false; !done; {
				say(t, conn, "0123456789")
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				words := make([]byte, 10)
				n, err := io.ReadFull(conn, words)
				if done = err != nil; errors.Is(err, os.ErrDeadlineExceeded) {
					t.Fatal("there is neither an answer nor an end")
				}
				if done && c.cut.Way == proxy.ToClient && string(words[:n]) != c.heard {
					t.Errorf("the client heard %q, want %q", words[:n], c.heard)
				}
			}
			if !receive(t, "the cut", happened) {
				t.Error("it says that nothing was cut")
			}
			got := receive(t, "what the server heard", e.heard)
			if !bytes.HasSuffix(got, []byte(c.got)) || (c.got == "0123" && bytes.HasSuffix(got, []byte("456789"))) {
				t.Errorf("the server heard %q", got)
			}
		})
	}
}

// The answer to one word is lost, and the word is not.
func TestCutBehindAWord(t *testing.T) {
	t.Parallel()
	e := newEcho(t)
	p := newProxy(t, e)
	conn := newClient(t, p)
	happened := begun(t, p, proxy.Cut{Way: proxy.ToClient, Behind: "commit"})
	for range 20 {
		say(t, conn, "other")
		if got := read(t, conn, 5); got != "other" {
			t.Fatalf("heard %q", got)
		}
	}
	for answered := true; answered; { // until the cut is armed
		say(t, conn, "commit")
		_ = conn.SetReadDeadline(time.Now().Add(patience))
		_, err := io.ReadFull(conn, make([]byte, 6))
		answered = err == nil
	}
	if !receive(t, "the cut", happened) {
		t.Error("it says that nothing was cut")
	}
	if got := receive(t, "what the server heard", e.heard); !bytes.HasSuffix(got, []byte("commit")) {
		t.Errorf("the server heard %q", got)
	}
}

func TestCutWithoutConnections(t *testing.T) {
	t.Parallel()
	p := newProxy(t, newEcho(t))
	if receive(t, "the cut", begun(t, p, proxy.Cut{})) {
		t.Error("it says that something was cut")
	}
}

// A cut that nothing came for leaves the connection as it was.
func TestCutInVain(t *testing.T) {
	t.Parallel()
	p := newProxy(t, newEcho(t))
	conn := newClient(t, p)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	if p.Cut(ctx, rand.New(rand.NewPCG(1, 1)), proxy.Cut{}) {
		t.Error("it says that something was cut")
	}
	say(t, conn, "again")
	if got := read(t, conn, 5); got != "again" {
		t.Errorf("heard %q", got)
	}
}

// watched is a context that tells when somebody first waits for its end.
type watched struct {
	context.Context //nolint:containedctx // it is one
	once            sync.Once
	asked           chan struct{}
}

func (w *watched) Done() <-chan struct{} {
	w.once.Do(func() { close(w.asked) })
	return w.Context.Done()
}

func TestStall(t *testing.T) {
	t.Parallel()
	p := newProxy(t, newEcho(t))
	conn := newClient(t, p)
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	asked := &watched{Context: ctx, asked: make(chan struct{})}
	stalled := make(chan bool, 1)
	go func() { stalled <- p.Stall(asked, rand.New(rand.NewPCG(1, 1))) }()
	receive(t, "the stall", asked.asked) // who waits for its end has begun it
	for range 3 {
		say(t, conn, "x") // it takes what is said
		newClient(t, p)   // others go on meanwhile: the proxy had the time to carry it
	}
	_ = conn.SetReadDeadline(time.Now().Add(50 * time.Millisecond))
	if n, err := conn.Read(make([]byte, 1)); !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("the connection does not stand still: %d bytes, %v", n, err)
	}
	cancel()
	if !receive(t, "the end of the stall", stalled) {
		t.Error("it says that nothing stood still")
	}
	if words := ends(t, conn); words != "" {
		t.Errorf("heard %q afterwards", words)
	}
}

func TestBlock(t *testing.T) {
	t.Parallel()
	p := newProxy(t, newEcho(t))
	conn := newClient(t, p)
	p.Block()
	ends(t, conn)
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for began := time.Now(); p.Links() > 0; <-look.C { // its end is counted a little later
		if time.Since(began) > patience {
			t.Fatalf("%d connections are left", p.Links())
		}
	}
	blocked, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	defer blocked.Close()
	if words := ends(t, blocked); words != "" {
		t.Errorf("heard %q", words)
	}
	p.Admit()
	newClient(t, p)
	if n := p.HangUp(); n != 1 {
		t.Errorf("%d connections, want one", n)
	}
}

func TestSlow(t *testing.T) {
	t.Parallel()
	p := newProxy(t, newEcho(t))
	conn := newClient(t, p)
	p.Slow(200 * time.Millisecond)
	began := time.Now()
	say(t, conn, "late")
	if got := read(t, conn, 4); got != "late" {
		t.Errorf("heard %q", got)
	}
	if took := time.Since(began); took < 200*time.Millisecond {
		t.Errorf("it took %s", took)
	}
	p.Slow(0)
}

func TestThrough(t *testing.T) {
	t.Parallel()
	p := newProxy(t, newEcho(t))
	got, err := p.Through("postgres://me:secret@db.example.com:5432/shop?sslmode=disable")
	if want := "postgres://me:secret@" + p.Addr() + "/shop?sslmode=disable"; err != nil || got != want {
		t.Errorf("%q and %v, want %q", got, err, want)
	}
	if _, err := p.Through("://"); err == nil {
		t.Error("an address that is none")
	}
}

// TestLead: what comes later goes to the other server, and what is there stays where it is.
func TestLead(t *testing.T) {
	t.Parallel()
	first, second := newEcho(t), newEcho(t)
	p := newProxy(t, first)
	before := newClient(t, p)
	p.Lead(second.listener.Addr().String())
	after := newClient(t, p)
	_, _ = before.Close(), after.Close()
	for _, e := range []*echo{first, second} {
		if words := receive(t, "a connection's end", e.heard); string(words) != "hello" {
			t.Errorf("heard %q", words)
		}
	}
}
