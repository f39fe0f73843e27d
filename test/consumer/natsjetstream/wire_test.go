package natsjetstream_test

import (
	"bytes"
	"net"
	"sync"
	"sync/atomic"
	"testing"
)

// wire stands between a consumer and its server. It can be told to break when the consumer says a word: the word is lost,
// and so is the connection.
type wire struct {
	listener net.Listener
	server   string
	breaksAt atomic.Pointer[string]
	broken   atomic.Int64
	down     atomic.Bool // nobody gets through
	group    sync.WaitGroup

	mu    sync.Mutex
	conns map[net.Conn]struct{}
}

func newWire(t *testing.T, server string) *wire {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{listener: listener, server: server, conns: map[net.Conn]struct{}{}}
	w.group.Go(w.accept)
	t.Cleanup(func() {
		_ = listener.Close()
		w.cut()
		w.group.Wait()
	})
	return w
}

func (w *wire) address() string { return w.listener.Addr().String() }

// breakAt makes the wire break the next time that the consumer says this.
func (w *wire) breakAt(word string) { w.breaksAt.Store(&word) }

func (w *wire) cut() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for conn := range w.conns {
		_ = conn.Close()
	}
}

func (w *wire) accept() {
	for {
		client, err := w.listener.Accept()
		if err != nil {
			return
		}
		if w.down.Load() {
			_ = client.Close()
			continue
		}
		server, err := net.Dial("tcp", w.server)
		if err != nil {
			_ = client.Close()
			continue
		}
		w.mu.Lock()
		w.conns[client], w.conns[server] = struct{}{}, struct{}{}
		w.mu.Unlock()
		w.group.Go(func() { w.copy(server, client, w.breaks) })
		w.group.Go(func() { w.copy(client, server, func([]byte) bool { return false }) })
	}
}

func (w *wire) breaks(said []byte) bool {
	word := w.breaksAt.Load()
	if word == nil || !bytes.Contains(said, []byte(*word)) || !w.breaksAt.CompareAndSwap(word, nil) {
		return false
	}
	w.broken.Add(1)
	return true
}

func (w *wire) copy(to, from net.Conn, breaks func(said []byte) bool) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, conn := range []net.Conn{to, from} {
			_ = conn.Close()
			delete(w.conns, conn)
		}
	}()
	buffer := make([]byte, 64<<10)
	for {
		n, err := from.Read(buffer)
		if err != nil || breaks(buffer[:n]) {
			return
		}
		if _, err := to.Write(buffer[:n]); err != nil {
			return
		}
	}
}
