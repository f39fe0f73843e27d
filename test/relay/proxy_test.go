package relay

import (
	"net"
	"net/url"
	"sync"
	"testing"
)

// A proxy stands between a relay and PostgreSQL. It can end all connections, refuse new ones, and swallow what
// the server answers.
type proxy struct {
	listener net.Listener
	server   string
	group    sync.WaitGroup

	mu       sync.Mutex
	open     map[net.Conn]bool
	refusing bool
	muted    bool
	dials    int // since refuse
}

func startProxy(t testing.TB, server string) *proxy {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	x := &proxy{listener: listener, server: address.Host, open: map[net.Conn]bool{}}
	x.group.Go(x.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		x.refuse()
		x.group.Wait()
	})
	return x
}

// url leads to the server through the proxy.
func (x *proxy) url(t testing.TB, server string) string {
	t.Helper()
	address, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	address.Host = x.listener.Addr().String()
	return address.String()
}

// refuse ends all connections and takes no more.
func (x *proxy) refuse() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refusing, x.dials = true, 0
	x.hangUp()
}

// mute lets statements through and swallows all answers.
func (x *proxy) mute() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.muted = true
}

// heal ends whatever the proxy was doing to connections.
func (x *proxy) heal() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.muted {
		x.hangUp() // half an answer may be missing
	}
	x.refusing, x.muted = false, false
}

func (x *proxy) hangUp() {
	for conn := range x.open {
		_ = conn.Close()
	}
	clear(x.open)
}

// refused counts the connections that were refused since refuse.
func (x *proxy) refused() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.dials
}

func (x *proxy) accept() {
	for {
		client, err := x.listener.Accept()
		if err != nil {
			return
		}
		server, err := net.Dial("tcp", x.server)
		if err != nil || !x.admit(client, server) {
			_ = client.Close()
			if server != nil {
				_ = server.Close()
			}
			continue
		}
		x.group.Go(func() { x.carry(client, server, false) })
		x.group.Go(func() { x.carry(server, client, true) })
	}
}

func (x *proxy) admit(client, server net.Conn) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refusing {
		x.dials++
		return false
	}
	if server != nil {
		x.open[client], x.open[server] = true, true
	}
	return server != nil
}

func (x *proxy) carry(from, to net.Conn, answers bool) {
	defer func() {
		_, _ = from.Close(), to.Close()
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.open, from)
		delete(x.open, to)
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		x.mu.Lock()
		swallow := answers && x.muted
		x.mu.Unlock()
		if swallow {
			continue
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
