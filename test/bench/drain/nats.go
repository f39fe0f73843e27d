package drain

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// NATS is a JetStream stream on disk, made anew for every turn so that it remembers no message ids.
type NATS struct {
	url     string
	conn    *nats.Conn
	stream  jetstream.JetStream
	name    string
	process int
}

// NewNATS connects.
func NewNATS(url string) (*NATS, error) {
	conn, err := nats.Connect(url, nats.Timeout(Patience))
	if err != nil {
		return nil, fmt.Errorf("drain: NATS: %w (`make services` starts it)", err)
	}
	stream, err := jetstream.New(conn, jetstream.WithDefaultTimeout(Patience), jetstream.WithPublishAsyncMaxPending(4000))
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("drain: NATS: %w", err)
	}
	_, port, _ := strings.Cut(strings.TrimPrefix(url, "nats://"), ":")
	return &NATS{
		url: url, conn: conn, stream: stream, name: "bench_drain_" + strconv.Itoa(os.Getpid()), process: natsProcess(port),
	}, nil
}

// Close hangs up and takes the stream away.
func (n *NATS) Close(ctx context.Context) {
	_ = n.stream.DeleteStream(ctx, n.name) // it may be gone already
	n.conn.Close()
}

// Subject is where the events go.
func (n *NATS) Subject() string { return n.name }

// prepare makes the stream and returns the check that it has every event once.
func (n *NATS) prepare(ctx context.Context, events int) (func(context.Context) error, error) {
	_ = n.stream.DeleteStream(ctx, n.name) // there may be none
	_, err := n.stream.CreateStream(ctx, jetstream.StreamConfig{
		Name: n.name, Subjects: []string{n.name}, Storage: jetstream.FileStorage,
	})
	if err != nil {
		return nil, fmt.Errorf("drain: NATS: %w", err)
	}
	return func(ctx context.Context) error {
		stream, err := n.stream.Stream(ctx, n.name)
		if err != nil {
			return fmt.Errorf("drain: NATS: %w", err)
		}
		if got := stream.CachedInfo().State.Msgs; got != uint64(events) {
			return fmt.Errorf("drain: the stream has %d messages of %d events", got, events)
		}
		return nil
	}, nil
}

// BareToNATS is the drainer of a loop that publishes to the stream.
func (n *NATS) BareToNATS(name string, l loop) Drainer {
	return Drainer{
		Name: name, Table: OutboxTable, Reads: l.reads(), Broker: n.prepare, BrokerProcess: n.process,
		Drain: func(ctx context.Context, ledger *Ledger, settled func() error) error {
			return l.drain(ctx, &natsSender{nats: n, ledger: ledger}, settled)
		},
	}
}

// natsSender publishes a batch and then waits for its acknowledgements. A message has the event's id, as
// any sender must give it that wants to be able to send again.
type natsSender struct {
	nats    *NATS
	ledger  *Ledger
	waiting []waiting
}

type waiting struct {
	event *stored
	ack   jetstream.PubAckFuture
}

func (s *natsSender) send(event *stored) error {
	ack, err := s.nats.stream.PublishMsgAsync(&nats.Msg{
		Subject: s.nats.name, Data: event.payload, Header: nats.Header{nats.MsgIdHdr: {event.id.String()}},
	})
	if err != nil {
		return fmt.Errorf("drain: NATS: %w", err)
	}
	s.waiting = append(s.waiting, waiting{event, ack})
	return nil
}

func (s *natsSender) await(ctx context.Context) error {
	for _, w := range s.waiting {
		select {
		case <-w.ack.Ok():
			s.ledger.Take(w.event.seq, w.event.aggregateID)
		case err := <-w.ack.Err():
			return fmt.Errorf("drain: NATS: %w", err)
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	s.waiting = s.waiting[:0]
	return nil
}

// natsProcess finds the server of this port on this machine; 0 if there is none to be seen.
func natsProcess(port string) int {
	commands, _ := filepath.Glob("/proc/[0-9]*/cmdline") // the pattern is a good one
	for _, path := range commands {
		text, err := os.ReadFile(path)
		if err != nil {
			continue // it ended
		}
		args := bytes.Split(text, []byte{0})
		if filepath.Base(string(args[0])) != "nats-server" || !bytes.Contains(text, []byte("\x00"+port+"\x00")) {
			continue
		}
		process, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err == nil {
			return process
		}
	}
	return 0
}
