// Package proxy stands between a test's client and a server: it cuts connections, refuses them, and loses, holds,
// limits and counts what is said on them. What it does it does when bytes come or when it is told to, and never by a
// clock: no test depends on how fast the machine is.
//
// It knows no protocol. A text that it is told to look for must arrive in one piece, as requests of drivers do.
// For faults by chance, as torture has them, there is internal/torture/proxy.
package proxy

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// Fault is what happens to a request.
type Fault int

// The faults. In each of them the client has said it all, gets no answer, and loses the connection.
const (
	None        Fault = iota
	LoseRequest       // the server never gets it
	HangUp            // the server has it; nobody waits for what it does with it
	LoseAnswer        // the server has done it and said so
)

// String is the fault in words.
func (f Fault) String() string {
	return [...]string{"whole", "request lost", "cut behind the request", "answer lost"}[f]
}

// Proxy takes connections on a loopback port of its own and leads them to one server.
type Proxy struct {
	listener net.Listener
	group    sync.WaitGroup
	requests func(to io.Writer, from io.Reader)

	mu       sync.Mutex
	changed  *sync.Cond
	server   string
	links    map[*link]bool
	blocking bool
	ended    bool
	accepted int
	blocked  int

	faultAt string // in the next request that has the fault
	fault   Fault
	faults  int
	muteAt  string // a request with this text, and everything after it, gets no answer
	countAt string
	counted int

	held    bool // what the server says waits
	dropped bool // what the server says is lost
	swallow bool // what clients say is lost
	limit   int  // bytes of an answer; zero: any number
	tooLong int
}

// link is one connection through the proxy.
type link struct {
	client, server net.Conn
	muted          bool // no answer reaches the client
	ends           bool // with the next answer
	answered       int  // bytes since the client has sent something
}

func (l *link) hangUp() { _, _ = l.client.Close(), l.server.Close() }

// New makes a proxy in front of a server, which is a URL or host:port. It ends with the test.
func New(t testing.TB, server string) *Proxy {
	t.Helper()
	return Parsing(t, server, nil)
}

// Parsing makes a proxy that leaves to a function how what a client says is carried to the server: it returns when the
// connection ends.
func Parsing(t testing.TB, server string, requests func(to io.Writer, from io.Reader)) *Proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &Proxy{listener: listener, server: host(t, server), links: map[*link]bool{}, requests: requests}
	p.changed = sync.NewCond(&p.mu)
	p.group.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.Block()
		p.set(func() { p.ended = true })
		p.group.Wait()
	})
	return p
}

func host(t testing.TB, server string) string {
	t.Helper()
	if _, _, err := net.SplitHostPort(server); err == nil {
		return server
	}
	parsed, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	return parsed.Host
}

// Address is where the proxy listens, as host:port.
func (p *Proxy) Address() string { return p.listener.Addr().String() }

// Through is the server's URL as it is through the proxy.
func (p *Proxy) Through(t testing.TB, server string) string {
	t.Helper()
	parsed, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Host = p.Address()
	return parsed.String()
}

// Lead leads connections that come from now on to another server.
func (p *Proxy) Lead(t testing.TB, server string) {
	t.Helper()
	address := host(t, server)
	p.set(func() { p.server = address })
}

// Accepted counts the connections that clients have made, also those that were refused then.
func (p *Proxy) Accepted() int { return get(p, &p.accepted) }

// HangUp ends all connections.
func (p *Proxy) HangUp() { p.set(p.hangUp) }

func (p *Proxy) hangUp() {
	for l := range p.links {
		l.hangUp()
	}
}

// Block ends all connections and takes no more.
func (p *Proxy) Block() {
	p.set(func() {
		p.blocking, p.blocked = true, 0
		p.hangUp()
	})
}

// Blocked counts the connections that were refused since Block.
func (p *Proxy) Blocked() int { return get(p, &p.blocked) }

// At lets a fault happen to the next request that has this text; None: to no request.
func (p *Proxy) At(text string, fault Fault) {
	p.set(func() { p.faultAt, p.fault, p.faults = text, fault, 0 })
}

// Faults counts the requests to which a fault happened since At: none or one.
func (p *Proxy) Faults() int { return get(p, &p.faults) }

// Mute lets requests with this text through, and swallows what the server says from then on.
func (p *Proxy) Mute(text string) { p.set(func() { p.muteAt = text }) }

// Heal takes connections again and mutes none; those that were muted end.
func (p *Proxy) Heal() {
	p.set(func() {
		p.blocking, p.muteAt = false, ""
		for l := range p.links {
			if l.muted {
				l.hangUp()
			}
		}
	})
}

// Count counts how often clients say this text, from now on.
func (p *Proxy) Count(text string) { p.set(func() { p.countAt = text }) }

// Counted is how often they have.
func (p *Proxy) Counted() int { return get(p, &p.counted) }

// Hold keeps what the server says back, until it is told otherwise.
func (p *Proxy) Hold(held bool) { p.set(func() { p.held = held }) }

// Drop loses what the server says, until it is told otherwise. Nothing that follows makes sense then: hang up.
func (p *Proxy) Drop(dropped bool) { p.set(func() { p.dropped = dropped }) }

// Swallow loses what clients say, until it is told otherwise. Nothing that follows makes sense then: hang up.
func (p *Proxy) Swallow(swallow bool) { p.set(func() { p.swallow = swallow }) }

// Limit makes it a slow link, which carries only so many bytes in the time that a request has: a connection whose
// answer is longer ends.
func (p *Proxy) Limit(size int) { p.set(func() { p.limit = size }) }

// TooLong counts the answers that were longer.
func (p *Proxy) TooLong() int { return get(p, &p.tooLong) }

func (p *Proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

func get(p *Proxy, figure *int) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return *figure
}
