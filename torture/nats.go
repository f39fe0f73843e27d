package torture

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
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

func openNATS(ctx context.Context, address *url.URL, run string, _ []string) (stage, error) {
	conn, err := nats.Connect(address.String(), nats.MaxReconnects(-1), nats.ReconnectWait(100*time.Millisecond))
	if err != nil {
		return nil, fmt.Errorf("torture: connect to NATS: %w", err)
	}
	s := &natsStage{run: run, conn: conn}
	if s.js, err = jetstream.New(conn); err == nil {
		s.stream, err = s.js.CreateStream(ctx, jetstream.StreamConfig{
			Name: run, Subjects: []string{run + ".>"}, Storage: jetstream.FileStorage, Duplicates: duplicateWindow,
		})
	}
	if err != nil {
		conn.Close()
		return nil, fmt.Errorf("torture: create a stream: %w", err)
	}
	return s, nil
}

func natsPublisher(_ context.Context, address *url.URL, run string, _ time.Duration) (relay.Publisher, func() error, error) {
	// A relay may start while the broker is away.
	conn, err := natsjetstream.Connect(address.String(), nats.RetryOnFailedConnect(true))
	if err != nil {
		return nil, nil, err
	}
	publisher, err := natsjetstream.New(conn, natsjetstream.Config{Stream: run})
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

func (s *natsStage) arrivals(ctx context.Context) (uint64, error) {
	info, err := s.stream.Info(ctx)
	if err != nil {
		return 0, fmt.Errorf("torture: ask the stream: %w", err)
	}
	return info.State.LastSeq, nil
}

func (s *natsStage) deliveries(ctx context.Context, _ []outbox.ID) ([]check.Delivery, []int64, error) {
	last, err := s.arrivals(ctx)
	if err != nil || last == 0 {
		return nil, nil, err
	}
	consumer, err := s.js.OrderedConsumer(ctx, s.run, jetstream.OrderedConsumerConfig{})
	if err != nil {
		return nil, nil, fmt.Errorf("torture: read the stream: %w", err)
	}
	messages, err := consumer.Messages()
	if err != nil {
		return nil, nil, fmt.Errorf("torture: read the stream: %w", err)
	}
	defer messages.Stop()
	deliveries := make([]check.Delivery, 0, last)
	times := make([]int64, 0, last)
	for uint64(len(deliveries)) < last {
		message, err := messages.Next(jetstream.NextContext(ctx))
		if err != nil {
			return nil, nil, fmt.Errorf("torture: read the stream: %w", err)
		}
		d, at, err := natsDelivery(message)
		if err != nil {
			return nil, nil, err
		}
		if d.Index != uint64(len(deliveries)+1) {
			return nil, nil, errors.New("torture: the stream has a gap: somebody else deleted messages")
		}
		deliveries, times = append(deliveries, d), append(times, at)
	}
	return deliveries, times, nil
}

// natsDelivery is a message of the stream in the judge's words.
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
		Index: meta.Sequence.Stream, ID: id, Type: get("event_type"), Topic: message.Subject(),
		Key: get("aggregate_type") + "/" + get("aggregate_id"), Payload: check.SumOf(message.Data()), Headers: sumOfHeaders(own),
	}, meta.Timestamp.UnixMicro(), nil
}
