package relay

import (
	"bytes"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/posthaste-dev/posthaste/relay"
)

// A proxy stands between a relay and PostgreSQL. It can end all connections, refuse new ones, and swallow the
// answers to a statement. And it can be a slow link, which carries only so many bytes in the time that a statement has: a
// connection whose answer is longer ends. That way no test depends on how fast the machine is.
type proxy struct {
	listener net.Listener
	server   string
	group    sync.WaitGroup

	mu       sync.Mutex
	links    map[*link]bool
	refusing bool
	muteAt   []byte // a statement with this text, and everything after it, gets no answer
	countAt  []byte // statements with this text are counted
	counted  int
	dials    int // since refuse
	carries  int // bytes of an answer; zero: any number
	tooLong  int // answers that were longer
}

// A link is one connection through the proxy.
type link struct {
	client, server net.Conn
	muted          bool
	answered       int // bytes since the client has sent something
}

func (l *link) hangUp() { _, _ = l.client.Close(), l.server.Close() }

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
	x := &proxy{listener: listener, server: address.Host, links: map[*link]bool{}}
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
	for l := range x.links {
		l.hangUp()
	}
}

// mute lets statements with this text through and swallows what the server answers.
func (x *proxy) mute(text string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.muteAt = []byte(text)
}

// counting has a relay's sessions send statements with their text, and counts those that have this one.
func (x *proxy) counting(text string) func(*relay.Config) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.countAt = []byte(text)
	return func(config *relay.Config) { config.Database += "&default_query_exec_mode=exec" }
}

// count is how many statements had the text.
func (x *proxy) count() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.counted
}

// slow makes it a link that carries so many bytes in the time of a statement.
func (x *proxy) slow(carries int) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.carries = carries
}

// timedOut counts the answers that were too long for the link.
func (x *proxy) timedOut() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tooLong
}

// heal ends whatever the proxy was doing to connections.
func (x *proxy) heal() {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.refusing, x.muteAt = false, nil
	for l := range x.links {
		if l.muted {
			l.hangUp()
		}
	}
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
		x.mu.Lock()
		address := x.server
		x.mu.Unlock()
		server, err := net.Dial("tcp", address)
		if err != nil {
			_ = client.Close()
			continue
		}
		l := &link{client: client, server: server}
		if !x.admit(l) {
			l.hangUp()
			continue
		}
		x.group.Go(func() { x.carry(l, client, server) })
		x.group.Go(func() { x.carry(l, server, client) })
	}
}

func (x *proxy) admit(l *link) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.refusing {
		x.dials++
		return false
	}
	x.links[l] = true
	return true
}

func (x *proxy) carry(l *link, from, to net.Conn) {
	defer func() {
		l.hangUp()
		x.mu.Lock()
		defer x.mu.Unlock()
		delete(x.links, l)
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil {
			return
		}
		if x.swallows(l, from == l.server, buffer[:n]) {
			continue
		}
		if x.tires(l, from == l.server, n) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}

func (x *proxy) swallows(l *link, answer bool, bytesRead []byte) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !answer && x.muteAt != nil && bytes.Contains(bytesRead, x.muteAt) {
		l.muted = true
	}
	if !answer && x.countAt != nil {
		x.counted += bytes.Count(bytesRead, x.countAt)
	}
	return answer && l.muted
}

// tires tells whether the answer is more than the link carries in the time.
func (x *proxy) tires(l *link, answer bool, n int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	if !answer {
		l.answered = 0
		return false
	}
	if l.answered += n; x.carries == 0 || l.answered <= x.carries {
		return false
	}
	x.tooLong++
	return true
}
