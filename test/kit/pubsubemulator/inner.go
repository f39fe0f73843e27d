package pubsubemulator

import (
	"fmt"
	"net"
	"time"

	pb "cloud.google.com/go/pubsub/v2/apiv1/pubsubpb"
	"cloud.google.com/go/pubsub/v2/pstest"
)

// newInner starts a pstest server and closes its port at once. The broker calls the implementation
// directly; a second port would be a way in that bypasses the journal.
func newInner() (*pstest.Server, error) {
	clock := &publishClock{}
	inner := pstest.NewServerWithAddress("127.0.0.1:0", pstest.ServerReactorOption{FuncName: "Publish", Reactor: clock})
	inner.SetTimeNowFunc(clock.now)
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

// publishClock gives pstest a publish time of its own for every message: far in the future and one
// nanosecond apart. Far, because pstest drops what was not delivered within ten minutes of its publish
// time. Apart, because it orders the messages of a key by that time alone. Subscribers see the
// real publish time, which the broker puts back.
//
// pstest holds its mutex wherever it calls React or now, so the fields need no other guard.
type publishClock struct {
	left  int
	ticks time.Duration
}

var farFuture = time.Date(2200, 1, 1, 0, 0, 0, 0, time.UTC)

// React sees each publish call before pstest asks for the time of its messages, and lets it pass.
func (c *publishClock) React(req any) (handled bool, ret any, err error) {
	if publish, ok := req.(*pb.PublishRequest); ok {
		c.left = len(publish.GetMessages())
	}
	return false, nil, nil
}

func (c *publishClock) now() time.Time {
	if c.left == 0 {
		return time.Now()
	}
	c.left--
	c.ticks++
	return farFuture.Add(c.ticks)
}
