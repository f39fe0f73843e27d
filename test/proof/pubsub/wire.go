package pubsub

import (
	"context"
	"errors"
	"net"
	"sync"
)

// A wire makes the connections of the clients under test, and breaks them.
type wire struct {
	mu     sync.Mutex
	conns  map[*conn]bool
	closed bool          // new connections are refused
	silent chan struct{} // answers wait until it is closed; nil: they do not
}

func newWire() *wire { return &wire{conns: map[*conn]bool{}} }

var errBlocked = errors.New("the proof refuses connections now")

// dial is for grpc.WithContextDialer.
func (w *wire) dial(ctx context.Context, address string) (net.Conn, error) {
	if w.isBlocked() {
		return nil, errBlocked
	}
	inner, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	c := &conn{Conn: inner, wire: w, gone: make(chan struct{})}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.conns[c] = true
	return c, nil
}

func (w *wire) isBlocked() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.closed
}

// cut ends all connections.
func (w *wire) cut() {
	w.mu.Lock()
	conns := make([]*conn, 0, len(w.conns))
	for c := range w.conns {
		conns = append(conns, c)
	}
	w.mu.Unlock()
	for _, c := range conns {
		_ = c.Close()
	}
}

// block ends all connections and refuses new ones until heal.
func (w *wire) block() {
	w.mu.Lock()
	w.closed = true
	w.mu.Unlock()
	w.cut()
}

// hush lets what clients say pass, and keeps back what Pub/Sub says, until heal.
func (w *wire) hush() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.silent == nil {
		w.silent = make(chan struct{})
	}
}

// heal ends what block and hush began.
func (w *wire) heal() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = false
	if w.silent != nil {
		close(w.silent)
		w.silent = nil
	}
}

func (w *wire) kept() chan struct{} {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.silent
}

// conn is one connection of a wire.
type conn struct {
	net.Conn
	wire *wire
	once sync.Once
	gone chan struct{}
}

// Read returns what was said when it may be heard.
func (c *conn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if silent := c.wire.kept(); silent != nil {
		select {
		case <-silent:
		case <-c.gone:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

// Close ends the connection. What was kept back on it is lost.
func (c *conn) Close() error {
	c.once.Do(func() { close(c.gone) })
	c.wire.mu.Lock()
	delete(c.wire.conns, c)
	c.wire.mu.Unlock()
	return c.Conn.Close()
}
