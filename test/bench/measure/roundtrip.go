package bench

import (
	"context"
	"net"
	"sync/atomic"
)

// RoundTrips counts the round trips of the connections that it dialled: every answer that follows
// something sent. Use one connection at a time.
type RoundTrips struct {
	count atomic.Int64
}

// Count is how many round trips there were so far.
func (r *RoundTrips) Count() int { return int(r.count.Load()) }

// Dial opens a connection whose round trips are counted. It fits pgconn.Config.DialFunc.
func (r *RoundTrips) Dial(ctx context.Context, network, address string) (net.Conn, error) {
	var dialer net.Dialer
	conn, err := dialer.DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &countedConn{Conn: conn, of: r}, nil
}

type countedConn struct {
	net.Conn
	of      *RoundTrips
	waiting atomic.Bool // something was sent and nothing has come back
}

func (c *countedConn) Write(data []byte) (int, error) {
	c.waiting.Store(true)
	return c.Conn.Write(data)
}

// Read counts when data arrives and not when the read begins: drivers may read before they write.
func (c *countedConn) Read(into []byte) (int, error) {
	n, err := c.Conn.Read(into)
	if n > 0 && c.waiting.Swap(false) {
		c.of.count.Add(1)
	}
	return n, err
}
