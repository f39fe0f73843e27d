package googlepubsub_test

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"
)

// middleman stands before a server. Until it is open nobody gets through.
type middleman struct {
	listener net.Listener
	group    sync.WaitGroup

	mu     sync.Mutex
	server string
	conns  []net.Conn
}

func newMiddleman(t *testing.T) *middleman {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &middleman{listener: listener}
	m.group.Go(m.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		m.mu.Lock()
		for _, conn := range m.conns {
			_ = conn.Close()
		}
		m.mu.Unlock()
		m.group.Wait()
	})
	return m
}

// url leads to the middleman instead.
func (m *middleman) url(t *testing.T, server string) string {
	t.Helper()
	parsed, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	parsed.Host = m.listener.Addr().String()
	return parsed.String()
}

func (m *middleman) open(t *testing.T, server string) {
	t.Helper()
	parsed, err := url.Parse(server)
	if err != nil {
		t.Fatal(err)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.server = parsed.Host
}

func (m *middleman) accept() {
	for {
		client, err := m.listener.Accept()
		if err != nil {
			return
		}
		m.mu.Lock()
		if m.server == "" {
			_ = client.Close()
		} else if upstream, err := net.Dial("tcp", m.server); err != nil {
			_ = client.Close()
		} else {
			m.conns = append(m.conns, client, upstream)
			m.group.Go(func() { defer upstream.Close(); _, _ = io.Copy(upstream, client) })
			m.group.Go(func() { defer client.Close(); _, _ = io.Copy(client, upstream) })
		}
		m.mu.Unlock()
	}
}
