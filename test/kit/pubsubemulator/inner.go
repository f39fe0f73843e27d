package pubsubemulator

import (
	"fmt"
	"net"
	"time"

	"cloud.google.com/go/pubsub/v2/pstest"
)

// newInner starts a pstest server and closes its port at once. The broker calls the implementation
// directly; a second port would be a way in that bypasses the journal.
func newInner() (*pstest.Server, error) {
	inner := pstest.NewServerWithAddress("127.0.0.1:0")
	if err := awaitServing(inner.Addr); err != nil {
		_ = inner.Close()
		return nil, fmt.Errorf("pstest does not serve: %w", err)
	}
	return inner, inner.Close()
}

// awaitServing returns when a gRPC server speaks at addr. pstest logs an error to stderr when it is
// closed between listening and serving.
func awaitServing(addr string) error {
	conn, err := net.DialTimeout("tcp", addr, time.Minute)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }()
	_ = conn.SetReadDeadline(time.Now().Add(time.Minute))
	_, err = conn.Read(make([]byte, 1))
	return err
}
