package torture

import (
	"context"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// duplicateWindow is the shortest that JetStream takes. A longer one would hide the duplicates that kills
// cause, and the proof could not see that they are explained.
const duplicateWindow = 100 * time.Millisecond

// natsStage is a stream of its own.
type natsStage struct {
	run    string
	conn   *nats.Conn
	js     jetstream.JetStream
	stream jetstream.Stream
}

// patienceWithNATS is for a server that is there, on a busy machine.
const patienceWithNATS = time.Minute

func openNATS(ctx context.Context, address *url.URL, run string, topics []string) (stage, error) {
	ctx, cancel := context.WithTimeout(ctx, patienceWithNATS)
	defer cancel()
	conn, err := nats.Connect(address.String(), nats.Timeout(patienceWithNATS), nats.MaxReconnects(-1),
		nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("torture: connect to NATS: %w", err)
	}
	s := &natsStage{run: run, conn: conn}
	if s.js, err = jetstream.New(conn); err == nil {
		s.stream, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: run, Subjects: topics, Storage: jetstream.FileStorage, Duplicates: duplicateWindow,
		})
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("torture: create a stream: %w", err)
	}
	return s, nil
}

func natsPublisher(_ context.Context, address *url.URL, run string,
	_ time.Duration,
) (publish.Publisher, func() error, error) {
	// A relay may start while the broker is away.
	conn, err := natsjetstream.Connect(address.String(), nats.RetryOnFailedConnect(true))
	if err != nil {
		return nil, nil, err
	}
	publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{Stream: run})
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return publisher, publisher.Close, nil
}

func (s *natsStage) close(ctx context.Context) error {
	defer s.conn.Close()
	if err := s.js.DeleteStream(ctx, s.run); err != nil {
		return fmt.Errorf("torture: delete the stream: %w", err)
	}
	return nil
}

func (s *natsStage) leave() error {
	s.conn.Close()
	return nil
}

// An answer that was lost with the server is not waited for: the query is sent again, this often.
const (
	queryTime = 3 * time.Second
	queries   = 10
)

func (s *natsStage) arrivals(ctx context.Context) (uint64, error) {
	for query := 1; ; query++ {
		querying, cancel := context.WithTimeout(ctx, queryTime)
		info, err := s.stream.Info(querying)
		cancel()
		switch {
		case err == nil:
			return info.State.LastSeq, nil
		case ctx.Err() != nil || query == queries:
			return 0, fmt.Errorf("torture: query the stream: %w", err)
		}
	}
}

func (s *natsStage) deliveries(ctx context.Context, _ []outbox.ID) ([]check.Delivery, []int64, error) {
	ctx, cancel := context.WithTimeout(ctx, idleReads*patienceWithNATS)
	defer cancel()
	last, err := s.arrivals(ctx)
	if err != nil || last == 0 {
		return nil, nil, err
	}
	deliveries := make([]check.Delivery, 0, last)
	times := make([]int64, 0, last)
	for idle := 0; uint64(len(deliveries)) < last; idle++ {
		if idle == idleReads {
			return nil, nil, fmt.Errorf("torture: the stream has %d messages, and after %d none comes", last, len(deliveries))
		}
		// A consumer of its own for every read: no state that could be lost, and nothing that waits forever.
		messages, err := s.read(ctx, uint64(len(deliveries)+1), last)
		if err != nil {
			return nil, nil, err
		}
		for message := range messages.Messages() {
			d, at, err := natsDelivery(message)
			if err != nil {
				return nil, nil, err
			}
			if d.Index != uint64(len(deliveries)+1) {
				break // what is between comes with the next read, unless somebody has deleted it
			}
			deliveries, times, idle = append(deliveries, d), append(times, at), -1
		}
	}
	return deliveries, times, nil
}

const (
	readSize  = 5000
	readTime  = 5 * time.Second
	idleReads = 6 // in a row, until the reader gives up
)

// read begins to read messages by their numbers.
func (s *natsStage) read(ctx context.Context, from, to uint64) (jetstream.MessageBatch, error) {
	consumer, err := s.stream.CreateConsumer(ctx, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartSequencePolicy, OptStartSeq: from, AckPolicy: jetstream.AckNonePolicy,
		InactiveThreshold: time.Minute, MemoryStorage: true,
	})
	if err != nil {
		return nil, fmt.Errorf("torture: read the stream: %w", err)
	}
	messages, err := consumer.Fetch(int(min(readSize, to-from+1)), jetstream.FetchMaxWait(readTime))
	if err != nil {
		return nil, fmt.Errorf("torture: read the stream: %w", err)
	}
	return messages, nil
}

// natsDelivery is a message of the stream in the checker's words.
func natsDelivery(message jetstream.Msg) (check.Delivery, int64, error) {
	meta, err := message.Metadata()
	if err != nil {
		return check.Delivery{}, 0, fmt.Errorf("torture: a message of the stream: %w", err)
	}
	own := map[string]string{}
	get := func(name string) string { return message.Headers().Get(name) }
	for name, values := range message.Headers() {
		if lower := strings.ToLower(name); !reserved[lower] && !strings.HasPrefix(lower, "nats-") && len(values) > 0 {
			own[lower] = values[0]
		}
	}
	id, err := outbox.ParseID(get("event_id"))
	if err != nil {
		return check.Delivery{}, 0, fmt.Errorf("torture: message %d has no event_id: %w", meta.Sequence.Stream, err)
	}
	return check.Delivery{
		Index: meta.Sequence.Stream, Request: requestOf(get("redelivered")),
		ID: id, Type: get("event_type"), Topic: message.Subject(),
		Key: get("aggregate_type") + "/" + get("aggregate_id"), Payload: check.SumOf(message.Data()),
		Headers: sumOfHeaders(own),
	}, meta.Timestamp.UnixMicro(), nil
}
