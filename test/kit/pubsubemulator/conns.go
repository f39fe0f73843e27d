package pubsubemulator

import (
	"net"
	"sync"
	"sync/atomic"
)

// connTable is a listener that remembers its connections, so that a fault can cut or silence one.
type connTable struct {
	net.Listener

	mu       sync.Mutex
	accepted int
	conns    map[string]*tableConn // by the client's address
}

func newConnTable(l net.Listener) *connTable {
	return &connTable{Listener: l, conns: map[string]*tableConn{}}
}

// Accept waits for the next connection.
func (t *connTable) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.accepted++
	c := &tableConn{Conn: conn, table: t, number: t.accepted}
	t.conns[conn.RemoteAddr().String()] = c
	return c, nil
}

func (t *connTable) find(client net.Addr) *tableConn {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.conns[client.String()]
}

// number tells the how-manieth connection the client's is, from 1; 0 when it is gone.
func (t *connTable) number(client net.Addr) int {
	if c := t.find(client); c != nil {
		return c.number
	}
	return 0
}

// reset cuts the connection from client with a TCP reset: the client learns that it is gone, and of
// nothing that was still under way on it.
func (t *connTable) reset(client net.Addr) {
	c := t.find(client)
	if c == nil {
		return
	}
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = c.Conn.Close()
}

// silence loses what the client sends from now on, and what is sent to it.
func (t *connTable) silence(client net.Addr) {
	if c := t.find(client); c != nil {
		c.silent.Store(true)
	}
}

// tableConn leaves the table when it is closed.
type tableConn struct {
	net.Conn
	table  *connTable
	number int
	silent atomic.Bool
}

// Read reads, and returns nothing but the connection's end once it is silent.
func (c *tableConn) Read(p []byte) (int, error) {
	for {
		n, err := c.Conn.Read(p)
		if err != nil || !c.silent.Load() {
			return n, err
		}
	}
}

// Write writes, or pretends to.
func (c *tableConn) Write(p []byte) (int, error) {
	if c.silent.Load() {
		return len(p), nil
	}
	return c.Conn.Write(p)
}

// Close closes the connection.
func (c *tableConn) Close() error {
	c.table.mu.Lock()
	delete(c.table.conns, c.RemoteAddr().String())
	c.table.mu.Unlock()
	return c.Conn.Close()
}
