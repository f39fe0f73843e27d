package crash

import (
	"bytes"
	"fmt"
	"net"

	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/publish"
)

// publisherAt is the broker's publisher, on a connection that has a point of its own.
func publisherAt(broker, stream string) (publish.Publisher, func() error, error) {
	conn, err := natsjetstream.Connect(broker, nats.SetCustomDialer(dialer{}))
	if err != nil {
		return nil, nil, err
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{Stream: stream})
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return publisher, publisher.Close, nil
}

type dialer struct{}

// Dial connects to the broker.
func (dialer) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	if err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	return socket{conn}, nil
}

// socket looks at what comes from the broker before its client does.
type socket struct{ net.Conn }

// Read passes the point with every acknowledgement that it has in its hands and the client has not seen. On a busy
// machine many come at once.
func (s socket) Read(into []byte) (int, error) {
	n, err := s.Conn.Read(into)
	for range bytes.Count(into[:n], []byte(`"stream":`)) {
		crash.Point("publish.after_send")
	}
	return n, err
}
