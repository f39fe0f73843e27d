package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator/audit"
)

// auditedMessage is a message in the words of an audit.
func auditedMessage(topic string, at time.Time, attributes map[string]string) audit.Message {
	message := audit.Message{At: at, Topic: topic, Type: attributes["event_type"], Copy: attributes["redelivered"] != ""}
	message.ID, _ = outbox.ParseID(attributes["event_id"])              // zero: it has none
	message.Seq, _ = strconv.ParseInt(attributes["outbox_seq"], 10, 64) // zero: it has none
	return message
}

// natsReader reads a stream, for topics that it has.
type natsReader struct {
	*natsjetstream.Reader

	topics []string
}

// natsHolding is what the streams of some subjects hold.
type natsHolding struct {
	conn   *nats.Conn
	stream string // of all subjects; empty: NATS knows
	topics []string
	notef  func(format string, args ...any)

	readers []natsReader
}

func (h *natsHolding) Open(ctx context.Context, from time.Time) (extent audit.Extent, err error) {
	streams, err := h.streams(ctx)
	if err != nil {
		return extent, err
	}
	for stream, subjects := range streams {
		reader, err := natsjetstream.NewReader(ctx, h.conn, natsjetstream.ReadConfig{
			Stream: stream, Subjects: subjects, From: from,
		})
		if errors.Is(err, natsjetstream.ErrTakenAway) {
			return extent, problem{
				code: "not_kept", exit: exitFailed, err: err, hint: "audit a stream that keeps messages by limits, for instance " +
					"one that has this one as its source",
			}
		}
		if err != nil {
			return extent, err
		}
		if deleted := reader.Deleted(); deleted > 0 {
			h.notef("the stream %s has let go of %d messages behind its first one: what is missing may be among them", stream,
				deleted)
		}
		extent.Messages += int64(reader.Messages())
		h.readers = append(h.readers, natsReader{Reader: reader, topics: subjects})
	}
	return extent, nil
}

// streams are those that have the subjects.
func (h *natsHolding) streams(ctx context.Context) (map[string][]string, error) {
	js, err := jetstream.New(h.conn)
	if err != nil {
		return nil, fmt.Errorf("JetStream: %w", err)
	}
	streams := map[string][]string{}
	for _, topic := range h.topics {
		stream := h.stream
		if stream == "" {
			stream, err = js.StreamNameBySubject(ctx, topic)
		}
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			return nil, noStream(topic)
		}
		if err != nil {
			return nil, fmt.Errorf("the stream of %s: %w", topic, err)
		}
		streams[stream] = append(streams[stream], topic)
	}
	return streams, nil
}

// alsoRead adds topics of before. One that was taken away since does not end the audit.
func (h *natsHolding) alsoRead(ctx context.Context, former []string) error {
	for _, topic := range former {
		shown, err := h.shows(ctx, topic)
		if err != nil {
			return err
		}
		if shown {
			h.topics = append(h.topics, topic)
			continue
		}
		h.notef("relays published to %s before, and no stream shows it: what is missing may have been there", topic)
	}
	return nil
}

// shows tells whether a topic can be read. That a stream which was named has a subject, its messages say: where it has
// another one as its source, its own subjects do not.
func (h *natsHolding) shows(ctx context.Context, topic string) (bool, error) {
	js, err := jetstream.New(h.conn)
	if err != nil {
		return false, fmt.Errorf("JetStream: %w", err)
	}
	name := h.stream
	if name == "" {
		name, err = js.StreamNameBySubject(ctx, topic)
	}
	var stream jetstream.Stream
	if err == nil {
		stream, err = js.Stream(ctx, name)
	}
	var info *jetstream.StreamInfo
	if err == nil {
		info, err = stream.Info(ctx, jetstream.WithSubjectFilter(topic))
	}
	if errors.Is(err, jetstream.ErrStreamNotFound) || errors.Is(err, jetstream.ErrInvalidSubject) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("the stream of %s: %w", topic, err)
	}
	return info.Config.Retention == jetstream.LimitsPolicy && (h.stream == "" || info.State.Subjects[topic] > 0), nil
}

func (h *natsHolding) Read(ctx context.Context, mark func(context.Context) error,
	each func(audit.Message) error,
) (map[string]time.Time, error) {
	if err := mark(ctx); err != nil {
		return nil, err
	}
	since := map[string]time.Time{}
	for _, reader := range h.readers {
		err := reader.Each(ctx, func(stored natsjetstream.Stored) error {
			return each(auditedMessage(stored.Subject, stored.At, stored.Attributes))
		})
		if err != nil {
			return nil, err
		}
		for _, topic := range reader.topics {
			since[topic] = reader.Since()
		}
	}
	return since, nil
}

// pubsubHolding is what comes to subscriptions of our own, for a while.
type pubsubHolding struct {
	environ  []string
	insecure bool
	topics   []string
	length   time.Duration
	quiet    time.Duration // after so long without a message all have come
	notef    func(format string, args ...any)

	subscriptions *pubsubbroker.Subscriptions
	// over is when the time was over, in microseconds; 0: it is not. What was published later keeps nobody waiting.
	over atomic.Int64
}

func (h *pubsubHolding) Open(ctx context.Context, _ time.Time) (extent audit.Extent, err error) {
	if h.subscriptions, err = pubsubbroker.Subscribe(ctx, h.environ, h.insecure, h.topics...); err != nil {
		return extent, pubsubProblem(err, h.topics[0])
	}
	h.notef("Pub/Sub shows what comes from now on: receiving for %s", h.length)
	return audit.Extent{FromNow: true}, nil
}

func (h *pubsubHolding) close() error {
	if h.subscriptions == nil {
		return nil
	}
	return h.subscriptions.Close()
}

// Read receives for the whole time, and then until nothing of that time comes for a while: Pub/Sub does not say when
// all has come.
func (h *pubsubHolding) Read(ctx context.Context, mark func(context.Context) error,
	each func(audit.Message) error,
) (map[string]time.Time, error) {
	ctx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	came := make(chan struct{}, 1)
	ended := make(chan error, 1)
	go func() { ended <- h.watch(ctx, stop, came, mark) }()
	err := h.subscriptions.Receive(ctx, func(message pubsubbroker.Received) {
		if over := h.over.Load(); over == 0 || message.At.UnixMicro() <= over {
			select {
			case came <- struct{}{}:
			default:
			}
		}
		one := auditedMessage(message.Topic, message.At, message.Attributes)
		one.Key = message.ID
		if err := each(one); err != nil {
			stop(err)
		}
	})
	if err != nil {
		stop(err)
	}
	watched := <-ended
	if cause := context.Cause(ctx); !errors.Is(cause, errAllCame) {
		return nil, errors.Join(cause, err)
	}
	return nil, errors.Join(watched, err)
}

// errAllCame ends receiving.
var errAllCame = errors.New("all came")

// watch ends the receiving when its time is over and nothing comes any more.
func (h *pubsubHolding) watch(ctx context.Context, stop context.CancelCauseFunc, came <-chan struct{},
	mark func(context.Context) error,
) error {
	if err := wait.For(ctx, h.length); err != nil {
		return err
	}
	if err := mark(ctx); err != nil {
		stop(err)
		return err
	}
	h.over.Store(time.Now().UnixMicro())
	silence := time.NewTimer(h.quiet)
	defer silence.Stop()
	for {
		select {
		case <-came:
			silence.Reset(h.quiet)
		case <-silence.C:
			stop(errAllCame)
			return nil
		case <-ctx.Done():
			return nil
		}
	}
}
