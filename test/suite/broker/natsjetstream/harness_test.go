package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// harness has a stream for each topic, and the topic as its only subject.
type harness struct {
	server *server
	proxy  *proxy.Proxy
	stream jetstream.StreamConfig // what every stream has
	config natsjetstream.PublisherConfig
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	s := startServer(t)
	return &harness{server: s, proxy: proxy.New(t, s.address)}
}

func (h *harness) connect() (*nats.Conn, error) {
	return natsjetstream.Connect("nats://relay:secret@"+h.proxy.Address(),
		nats.ReconnectWait(20*time.Millisecond), nats.ReconnectJitter(10*time.Millisecond, 10*time.Millisecond))
}

// connected waits for the server: a connect that takes longer than it may returns, and goes on by itself.
func connected(ctx context.Context, conn *nats.Conn) error {
	return eventually.Works(ctx, func() error {
		if status := conn.Status(); status != nats.CONNECTED {
			return fmt.Errorf("the connection is %s", status)
		}
		return nil
	})
}

func (h *harness) open(ctx context.Context) (publish.Publisher, func() error, error) {
	conn, err := h.connect()
	if err != nil {
		return nil, nil, err
	}
	if err := connected(ctx, conn); err != nil {
		conn.Close()
		return nil, nil, err
	}
	publisher, err := natsjetstream.NewPublisher(conn, h.config)
	if err != nil {
		conn.Close()
		return nil, nil, err
	}
	return publisher, publisher.Close, nil
}

func (h *harness) makeTopic(ctx context.Context, topic string) error {
	config := h.stream
	config.Name, config.Subjects = topic, []string{topic}
	return h.server.admin(func(js jetstream.JetStream) error {
		_, err := js.CreateStream(ctx, config)
		return err
	})
}

func (h *harness) removeTopic(ctx context.Context, topic string) error {
	return h.server.admin(func(js jetstream.JetStream) error { return js.DeleteStream(ctx, topic) })
}

func (h *harness) arrived(ctx context.Context, topic string) (all []relaytest.Arrived, err error) {
	ctx, cancel := context.WithTimeout(ctx, eventually.Patience)
	defer cancel()
	err = h.server.admin(func(js jetstream.JetStream) error {
		stream, err := js.Stream(ctx, topic)
		if err != nil {
			return err
		}
		count := stream.CachedInfo().State.Msgs
		if count == 0 {
			return nil
		}
		consumer, err := stream.OrderedConsumer(ctx, jetstream.OrderedConsumerConfig{})
		if err != nil {
			return err
		}
		messages, err := consumer.Messages()
		if err != nil {
			return err
		}
		defer messages.Stop()
		for range count {
			message, err := messages.Next(jetstream.NextContext(ctx))
			if err != nil {
				return err
			}
			all = append(all, relaytest.Arrived{Body: message.Data(), Attributes: natsjetstream.Attributes(message.Headers())})
		}
		return nil
	})
	return all, err
}

// size is what the server counts: the header block and the body.
func (h *harness) size(message *publish.Message) int {
	size := len("NATS/1.0\r\n") + len("\r\n") + len(message.Body)
	add := func(name, value string) { size += len(name) + len(": ") + len(value) + len("\r\n") }
	add("Nats-Msg-Id", message.ID.String())
	if h.config.Stream != "" {
		add("Nats-Expected-Stream", h.config.Stream)
	}
	for name, value := range message.Attributes {
		add(name, value)
	}
	return size
}

func (h *harness) stop(context.Context, string) (func(context.Context) error, error) {
	return h.server.start, h.server.kill()
}

func (h *harness) slow(context.Context, string) (func(context.Context) error, error) {
	h.proxy.Hold(true)
	return func(context.Context) error {
		h.proxy.Hold(false)
		return nil
	}, nil
}

func (h *harness) hang(context.Context, string) (func(context.Context) error, error) {
	h.proxy.Swallow(true)
	return func(context.Context) error {
		h.proxy.HangUp()
		h.proxy.Swallow(false)
		h.proxy.HangUp() // one that began meanwhile
		return nil
	}, nil
}

func (h *harness) loseAck(context.Context, string) (func(context.Context) error, error) {
	h.proxy.Drop(true)
	return func(context.Context) error {
		h.proxy.HangUp()
		h.proxy.Drop(false)
		return nil
	}, nil
}

// deny takes away the permission to publish to the topic.
func (h *harness) deny(ctx context.Context, topic string) (func(context.Context) error, error) {
	if err := h.server.configure("secret", topic); err != nil {
		return nil, err
	}
	// A connection as old as the publisher's: when it is refused, so is the publisher's.
	rejected := make(chan error, 100)
	probe, err := nats.Connect("nats://relay:secret@"+h.server.address,
		nats.Timeout(eventually.Patience), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			rejected <- err
		}))
	if err != nil {
		return nil, err
	}
	defer probe.Close()
	err = h.server.reload(ctx, func() error {
		// Without a reply subject and with a stream that is not there, the stream stays as it is.
		message := &nats.Msg{Subject: topic, Header: nats.Header{jetstream.ExpectedStreamHeader: {"none"}}}
		if err := probe.PublishMsg(message); err != nil {
			return err
		}
		if err := probe.FlushTimeout(eventually.Patience); err != nil {
			return err
		}
		select {
		case err := <-rejected:
			if errors.Is(err, nats.ErrPermissionViolation) {
				return nil
			}
			return err
		case <-time.After(20 * time.Millisecond):
			return errors.New("the permission is still there")
		}
	})
	return func(ctx context.Context) error {
		return errors.Join(h.server.configure("secret", ""), h.server.reload(ctx, func() error { return nil }))
	}, err
}

// revoke changes the password: the server closes the connection and takes none of the old ones.
func (h *harness) revoke(ctx context.Context, _ string) (func(context.Context) error, error) {
	try := func() error {
		conn, err := nats.Connect("nats://relay:secret@"+h.server.address, nats.Timeout(eventually.Patience))
		if err == nil {
			conn.Close()
		}
		return err
	}
	if err := h.server.configure("another", ""); err != nil {
		return nil, err
	}
	err := h.server.reload(ctx, func() error {
		if err := try(); !errors.Is(err, nats.ErrAuthorization) {
			return fmt.Errorf("the old password: %w", err)
		}
		return nil
	})
	return func(ctx context.Context) error {
		return errors.Join(h.server.configure("secret", ""), h.server.reload(ctx, try))
	}, err
}

func (h *harness) suite() relaytest.Harness {
	return relaytest.Harness{
		Open: h.open, MakeTopic: h.makeTopic, RemoveTopic: h.removeTopic, Arrived: h.arrived,
		MaxBytes: maxPayload, Size: h.size,
		Stop: h.stop, Slow: h.slow, Hang: h.hang, LoseAck: h.loseAck, DenyAuth: h.deny,
		// What is slow here is held forever: who does not heed its context does not return within any grace.
		Deadline: eventually.Patience, Grace: time.Minute, Recovery: eventually.Patience,
		Cannot: map[relaytest.Ability]string{
			relaytest.Pipeline:      "JetStream takes what comes behind a message that it refused",
			relaytest.Key:           "JetStream has no keys: a stream has one order for all",
			relaytest.RejectMessage: "JetStream refuses by size, subject and stream, never one message among equals",
		},
	}
}
