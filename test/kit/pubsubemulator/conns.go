package pubsubemulator

import (
	"net"
	"sync"
)

// connTable is a listener that remembers its connections, so that a fault can cut one.
type connTable struct {
	net.Listener

	mu    sync.Mutex
	conns map[string]net.Conn // by the client's address
}

func newConnTable(l net.Listener) *connTable {
	return &connTable{Listener: l, conns: map[string]net.Conn{}}
}

// Accept waits for the next connection.
func (t *connTable) Accept() (net.Conn, error) {
	conn, err := t.Listener.Accept()
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.conns[conn.RemoteAddr().String()] = conn
	return &tableConn{Conn: conn, table: t}, nil
}

// reset cuts the connection from client with a TCP reset: the client learns that it is gone, and of
// nothing that was still under way on it.
func (t *connTable) reset(client net.Addr) {
	t.mu.Lock()
	conn := t.conns[client.String()]
	t.mu.Unlock()
	if conn == nil {
		return
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	_ = conn.Close()
}

// tableConn leaves the table when it is closed.
type tableConn struct {
	net.Conn
	table *connTable
}

// Close closes the connection.
func (c *tableConn) Close() error {
	c.table.mu.Lock()
	delete(c.table.conns, c.RemoteAddr().String())
	c.table.mu.Unlock()
	return c.Conn.Close()
}
