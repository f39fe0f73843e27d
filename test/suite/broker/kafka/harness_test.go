package kafka

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/posthaste-dev/posthaste/broker/kafka"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// maxBytes is the limit of every topic.
const maxBytes = 20_000

// harness is a real server.
type harness struct {
	*server
	config kafka.PublisherConfig
}

func newHarness(t *testing.T) *harness {
	t.Helper()
	return &harness{server: startServer(t)}
}

func (h *harness) cluster() kafka.Cluster {
	login := scram.Auth{User: user, Pass: password}.AsSha256Mechanism()
	return kafka.Cluster{Brokers: []string{h.proxy.Address()}, Login: login}
}

func (h *harness) open(context.Context) (publish.Publisher, func() error, error) {
	publisher, err := kafka.NewPublisher(h.cluster(), h.config)
	if err != nil {
		return nil, nil, err
	}
	return publisher, publisher.Close, nil
}

func (h *harness) make(ctx context.Context, topic string) error {
	return h.makeTopic(ctx, topic, fmt.Sprintf("max.message.bytes=%d", maxBytes))
}

func (h *harness) arrived(ctx context.Context, topic string) ([]relaytest.Arrived, error) {
	records, err := h.records(ctx, topic)
	return arrivals(records), err
}

func arrivals(records []*kgo.Record) (all []relaytest.Arrived) {
	for _, r := range records {
		all = append(all, relaytest.Arrived{Body: r.Value, Attributes: kafka.Attributes(r.Headers), Key: string(r.Key)})
	}
	return all
}

// stop takes the broker away. One case kills it and starts it again, which costs a Java machine; the others see it
// go by its connections.
func (h *harness) stop(_ context.Context, topic string) (func(context.Context) error, error) {
	if strings.HasPrefix(topic, "relaytest-restart-") {
		return h.start, h.End(os.Kill)
	}
	h.proxy.Block()
	return func(context.Context) error {
		h.proxy.Heal()
		return nil
	}, nil
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
		h.proxy.HangUp()
		return nil
	}, nil
}

// deny forbids the user to write to the topic.
func (h *harness) deny(ctx context.Context, topic string) (func(context.Context) error, error) {
	return h.forbid(ctx, topic, kadm.OpWrite)
}

func (h *harness) forbid(ctx context.Context, topic string, what kmsg.ACLOperation,
) (func(context.Context) error, error) {
	rules := func() *kadm.ACLBuilder {
		return kadm.NewACLs().Topics(topic).ResourcePatternType(kadm.ACLPatternLiteral)
	}
	denied := rules().Deny("User:" + user).DenyHosts().Operations(what)
	allowed := rules().Allow("User:" + user).AllowHosts().Operations(kadm.OpAll)
	for _, rule := range []*kadm.ACLBuilder{denied, allowed} {
		answer, err := h.admin.CreateACLs(ctx, rule)
		for _, one := range answer {
			err = errors.Join(err, one.Err)
		}
		if err != nil {
			return nil, err
		}
	}
	return func(ctx context.Context) error {
		var all error
		for _, rule := range []*kadm.ACLBuilder{denied, allowed} {
			answer, err := h.admin.DeleteACLs(ctx, rule)
			all = errors.Join(all, err)
			for _, one := range answer {
				all = errors.Join(all, one.Err)
			}
		}
		return all
	}, nil
}

// revoke changes the password, and ends the connections that were made with the old one.
func (h *harness) revoke(ctx context.Context, _ string) (func(context.Context) error, error) {
	err := h.scram(ctx, "another")
	h.proxy.HangUp()
	return func(ctx context.Context) error { return h.scram(ctx, password) }, err
}

func (h *harness) suite() relaytest.Harness {
	return relaytest.Harness{
		Open: h.open, MakeTopic: h.make, RemoveTopic: h.removeTopic, Arrived: h.arrived,
		MaxBytes: maxBytes, Size: kafka.MessageSize,
		Stop: h.stop, Slow: h.slow, Hang: h.hang, LoseAck: h.loseAck, DenyAuth: h.deny,
		// What is slow here is held forever: who does not heed its context does not return within any grace. The
		// publisher tries until the deadline, so some cases wait for it.
		Deadline: 15 * time.Second, Grace: time.Minute, Recovery: eventually.Patience,
		Cannot: map[relaytest.Ability]string{
			relaytest.RejectMessage: "without a plugin Kafka refuses by size and topic, never one message among equals: see " +
				"the fake",
			relaytest.Dedupe: "Kafka takes a batch once for as long as the publisher tries it; what was given up and comes " +
				"again is a new one",
		},
	}
}
