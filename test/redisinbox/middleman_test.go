package redisinbox

import (
	"bytes"
	"io"
	"net"
	"sync"
	"testing"
)

// middleman stands between a client and a server, and can lose an answer: the server has done what it was asked, and the
// client does not hear of it.
type middleman struct {
	address string

	lock sync.Mutex
	text string // in the request whose answer is to be lost
	lost bool
}

func newMiddleman(t *testing.T, server string) *middleman {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &middleman{address: listener.Addr().String()}
	var group sync.WaitGroup
	var all sync.Map
	t.Cleanup(func() {
		_ = listener.Close()
		all.Range(func(conn, _ any) bool { _ = conn.(net.Conn).Close(); return true })
		group.Wait()
	})
	group.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			upstream, err := net.Dial("tcp", server)
			if err != nil {
				_ = client.Close()
				continue
			}
			all.Store(client, nil)
			all.Store(upstream, nil)
			group.Go(func() { m.pass(client, upstream) })
		}
	})
	return m
}

// pass carries requests and answers in turns, as a client without pipelines sends them.
func (m *middleman) pass(client, upstream net.Conn) {
	defer client.Close()
	defer upstream.Close()
	var group sync.WaitGroup
	defer group.Wait()
	var lose sync.Mutex // held while the answer that is lost has not come
	losing := false
	group.Go(func() {
		defer client.Close()
		buffer := make([]byte, 64<<10)
		for {
			n, err := upstream.Read(buffer)
			lose.Lock()
			gone := losing
			lose.Unlock()
			if err != nil || gone {
				return
			}
			if _, err := client.Write(buffer[:n]); err != nil {
				return
			}
		}
	})
	defer upstream.Close()
	buffer := make([]byte, 64<<10)
	for {
		n, err := client.Read(buffer)
		if err != nil {
			return
		}
		if m.loses(buffer[:n]) {
			lose.Lock()
			losing = true
			lose.Unlock()
		}
		if _, err := io.Copy(upstream, bytes.NewReader(buffer[:n])); err != nil {
			return
		}
	}
}

// swallowAnswerTo loses the answer to the next request that has this text.
func (m *middleman) swallowAnswerTo(text string) {
	m.lock.Lock()
	defer m.lock.Unlock()
	m.text, m.lost = text, false
}

func (m *middleman) swallowed() bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	return m.lost
}

func (m *middleman) loses(request []byte) bool {
	m.lock.Lock()
	defer m.lock.Unlock()
	if m.text == "" || !bytes.Contains(request, []byte(m.text)) {
		return false
	}
	m.text, m.lost = "", true
	return true
}
