// Package proxy stands between clients and a server and does to their connections what networks do: it cuts them
// after so many bytes, loses what one side says, lets nothing through without closing, slows down, blocks.
//
// It looks at no protocol but for [Cut.Behind], and promises nothing about how bytes are grouped.
package proxy

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"sync"
	"time"
)

// Way is a direction of bytes.
type Way int

// The ways.
const (
	Both Way = iota
	ToServer
	ToClient
)

// String is the way in words.
func (w Way) String() string { return [...]string{"both ways", "to the server", "to the client"}[w] }

// Proxy takes connections on a loopback port of its own and leads them to one server.
type Proxy struct {
	listener net.Listener
	group    sync.WaitGroup
	ended    chan struct{}
	close    func()

	mu       sync.Mutex
	server   string
	next     int
	links    map[*link]bool
	blocking bool
	delay    time.Duration
}

// Listen makes a proxy in front of a server, which is a host and a port. Close it.
func Listen(server string) (*Proxy, error) {
	listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("proxy: %w", err)
	}
	p := &Proxy{server: server, listener: listener, ended: make(chan struct{}), links: map[*link]bool{}}
	p.close = sync.OnceFunc(func() {
		_ = listener.Close()
		close(p.ended)
		p.Block()
		p.group.Wait()
	})
	p.group.Go(p.accept)
	return p, nil
}

// Addr is where the proxy listens.
func (p *Proxy) Addr() string { return p.listener.Addr().String() }

// Through is the address of the server, a URL, as it is through the proxy.
func (p *Proxy) Through(address string) (string, error) {
	at, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("proxy: the server's address: %w", err)
	}
	at.Host = p.Addr()
	return at.String(), nil
}

// Close ends all connections and the proxy.
func (p *Proxy) Close() { p.close() }

// HangUp ends all connections, and tells how many there were.
func (p *Proxy) HangUp() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for l := range p.links {
		l.hangUp()
	}
	return len(p.links)
}

// Block ends all connections and takes no more, until Admit.
func (p *Proxy) Block() {
	p.mu.Lock()
	p.blocking = true
	p.mu.Unlock()
	p.HangUp()
}

// Admit takes connections again.
func (p *Proxy) Admit() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.blocking = false
}

// Lead leads connections that come from now on to another server.
func (p *Proxy) Lead(server string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.server = server
}

// Slow lets everything that the server says arrive that much later, on all connections; 0 ends it.
func (p *Proxy) Slow(by time.Duration) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.delay = by
}

// Links is how many connections there are.
func (p *Proxy) Links() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return len(p.links)
}

// Cut says where a connection ends.
type Cut struct {
	// Way is what is counted: the connection ends, both ways, when more than After bytes have to go there. The rest
	// of them is lost.
	Way   Way
	After int
	// Behind counts only from a text on that the client sends; the text itself arrives. Defaults to everything.
	Behind string
}

// Cut has one connection cut, chosen by chance, and returns when that has happened. False: there was none, or it ended
// otherwise, or nothing went that way until the context was done.
func (p *Proxy) Cut(ctx context.Context, random *rand.Rand, cut Cut) bool {
	l := p.choose(random)
	if l == nil {
		return false
	}
	done := make(chan struct{})
	l.arm(&armed{Cut: cut, on: cut.Behind == "", done: done})
	select {
	case <-done:
		return true
	case <-l.ended:
		select {
		case <-done:
			return true
		default:
			return false
		}
	case <-ctx.Done():
		l.arm(nil)
		return false
	}
}

// Stall lets nothing through on one connection, chosen by chance, and keeps it open, until the context is done; then
// it hangs up. False: there was none.
func (p *Proxy) Stall(ctx context.Context, random *rand.Rand) bool {
	l := p.choose(random)
	if l == nil {
		return false
	}
	l.stall()
	<-ctx.Done()
	l.hangUp()
	return true
}

// StallAll does so with all connections there are, and tells how many.
func (p *Proxy) StallAll(ctx context.Context) int {
	links := p.list()
	if len(links) == 0 {
		return 0
	}
	for _, l := range links {
		l.stall()
	}
	<-ctx.Done()
	for _, l := range links {
		l.hangUp()
	}
	return len(links)
}

// list is the connections in the order in which they came, so that a seed chooses the same.
func (p *Proxy) list() []*link {
	p.mu.Lock()
	defer p.mu.Unlock()
	links := make([]*link, 0, len(p.links))
	for l := range p.links {
		links = append(links, l)
	}
	slices.SortFunc(links, func(a, b *link) int { return a.number - b.number })
	return links
}

func (p *Proxy) choose(random *rand.Rand) *link {
	links := p.list()
	if len(links) == 0 {
		return nil
	}
	return links[random.IntN(len(links))]
}

func (p *Proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.group.Go(func() { p.connect(client) })
	}
}

func (p *Proxy) connect(client net.Conn) {
	p.mu.Lock()
	to := p.server
	p.mu.Unlock()
	server, err := (&net.Dialer{Timeout: 10 * time.Second}).Dial("tcp", to)
	if err != nil {
		_ = client.Close()
		return
	}
	l := newLink(client, server)
	if !p.admit(l) {
		l.hangUp()
		return
	}
	var ways sync.WaitGroup
	ways.Go(func() { p.carry(l, ToServer, client, server) })
	ways.Go(func() { p.carry(l, ToClient, server, client) })
	ways.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.links, l)
}

func (p *Proxy) admit(l *link) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.blocking {
		return false
	}
	p.next++
	l.number = p.next
	p.links[l] = true
	return true
}

// carry moves bytes one way until the connection ends.
func (p *Proxy) carry(l *link, way Way, from, to net.Conn) {
	defer l.hangUp()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if !l.flows() || !p.dawdle(l, way) {
				return
			}
			some, whole := l.pass(way, buffer[:n])
			if _, err := to.Write(some); err != nil || !whole {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// dawdle waits for as long as what the server says is to be late. False: the connection ended meanwhile.
func (p *Proxy) dawdle(l *link, way Way) bool {
	p.mu.Lock()
	delay := p.delay
	p.mu.Unlock()
	if delay == 0 || way != ToClient {
		return true
	}
	timer := time.NewTimer(delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-l.ended:
		return false
	}
}

// link is one connection through the proxy.
type link struct {
	number         int
	client, server net.Conn
	ended          chan struct{}
	hangUp         func()

	mu      sync.Mutex
	stalled bool
	cut     *armed
}

// armed is a cut that waits for its bytes.
type armed struct {
	Cut
	on   bool // the text has been seen
	done chan struct{}
}

func newLink(client, server net.Conn) *link {
	l := &link{client: client, server: server, ended: make(chan struct{})}
	l.hangUp = sync.OnceFunc(func() {
		close(l.ended)
		_, _ = client.Close(), server.Close()
	})
	return l
}

func (l *link) arm(cut *armed) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.cut = cut
}

func (l *link) stall() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.stalled = true
}

// flows waits while the connection stands still, which only its end ends. False: it has ended.
func (l *link) flows() bool {
	l.mu.Lock()
	stalled := l.stalled
	l.mu.Unlock()
	if !stalled {
		return true
	}
	<-l.ended
	return false
}

// pass is what of the bytes may go on. Not whole: the connection ends behind them.
func (l *link) pass(way Way, some []byte) (_ []byte, whole bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	c := l.cut
	if c == nil {
		return some, true
	}
	if !c.on {
		c.on = way == ToServer && bytes.Contains(some, []byte(c.Behind))
		return some, true
	}
	if c.Way != Both && c.Way != way {
		return some, true
	}
	if len(some) <= c.After {
		c.After -= len(some)
		return some, true
	}
	close(c.done)
	l.cut = nil
	return some[:c.After], false
}
