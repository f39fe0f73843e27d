package natsjetstream

import (
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// proxy stands between a publisher and the server, and does things to what the server says.
type proxy struct {
	listener net.Listener
	server   string
	group    sync.WaitGroup
	accepted atomic.Int64 // connections so far

	mu      sync.Mutex
	changed *sync.Cond
	held    bool // what the server says waits
	dropped bool // what the server says is lost
	ended   bool
	conns   map[net.Conn]struct{}
}

func startProxy(t *testing.T, server string) *proxy {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	p := &proxy{listener: listener, server: server, conns: map[net.Conn]struct{}{}}
	p.changed = sync.NewCond(&p.mu)
	p.group.Go(p.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		p.set(func() { p.ended = true })
		p.cut()
		p.group.Wait()
	})
	return p
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) set(change func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	change()
	p.changed.Broadcast()
}

// cut closes every connection: after words were lost nothing that follows makes sense.
func (p *proxy) cut() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
}

func (p *proxy) accept() {
	for {
		client, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.accepted.Add(1)
		server, err := net.Dial("tcp", p.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		p.mu.Lock()
		p.conns[client], p.conns[server] = struct{}{}, struct{}{}
		p.mu.Unlock()
		p.group.Go(func() { p.copy(server, client, func() bool { return true }) })
		p.group.Go(func() { p.copy(client, server, p.lets) })
	}
}

// lets waits while words are held, and tells whether they go on.
func (p *proxy) lets() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for p.held && !p.ended {
		p.changed.Wait()
	}
	return !p.dropped
}

func (p *proxy) copy(to, from net.Conn, lets func() bool) {
	defer func() {
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, conn := range []net.Conn{to, from} {
			_ = conn.Close()
			delete(p.conns, conn)
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 && lets() {
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
