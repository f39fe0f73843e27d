package kafka

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/sasl"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"github.com/posthaste-dev/posthaste/broker/kafka"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// TestRealServer has one server for all of its parts, since it is a Java machine each time. The suite takes it away
// from everybody, so they come one after the other.
//
//nolint:paralleltest,tparallel // see above
func TestRealServer(t *testing.T) {
	t.Parallel()
	h := newHarness(t)
	t.Run("suite", func(t *testing.T) { relaytest.TestPublisher(t, h.suite()) })
	for _, part := range []struct {
		name string
		run  func(*testing.T, *harness)
	}{
		{"a limit that may not be read", theBrokersOwnLimit},
		{"revoked password", revokedPassword},
		{"logins", logins},
		{"partitions grow", partitionsGrow},
		{"check", check},
	} {
		t.Run(part.name, func(t *testing.T) { part.run(t, h) })
	}
}

// only runs some cases of the suite with a harness that differs.
func only(t *testing.T, suite relaytest.Harness, names ...string) {
	t.Helper()
	ran := 0
	for _, result := range relaytest.Check(t.Context(), suite, names...) {
		for _, problem := range result.Problems {
			t.Errorf("%s: %s", result.Case, problem)
		}
		if result.Skipped == "" {
			ran++
		}
	}
	if want := len(names) + 1; ran != want { // one is about the harness
		t.Errorf("%d cases ran, want %d", ran, want)
	}
}

// theBrokersOwnLimit: the publisher does not know the topic's limit, and the broker refuses whole batches.
func theBrokersOwnLimit(t *testing.T, h *harness) {
	own := &harness{server: h.server, config: kafka.PublisherConfig{Compression: "none"}}
	suite := own.suite()
	suite.MakeTopic = func(ctx context.Context, topic string) error {
		if err := own.make(ctx, topic); err != nil {
			return err
		}
		_, err := own.forbid(ctx, topic, kadm.OpDescribeConfigs)
		return err
	}
	only(t, suite, "size limit", "one bad message among good ones/too large", "pipeline/too large in the middle")
}

func revokedPassword(t *testing.T, h *harness) {
	suite := h.suite()
	suite.DenyAuth = h.revoke
	only(t, suite, "denied credentials")
}

// logins: each way to say who one is, over TLS that is verified, and what is wrong is a fault of the topic.
func logins(t *testing.T, h *harness) {
	topic := "logins"
	if err := h.make(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	trusting := &tls.Config{RootCAs: h.roots, MinVersion: tls.VersionTLS12}
	right := scram.Auth{User: user, Pass: password}
	for _, c := range []struct {
		name    string
		address string
		login   sasl.Mechanism
		tls     *tls.Config
		wrong   string // what the error says; empty: it works
	}{
		{"PLAIN", h.secure, plain.Auth{User: user, Pass: password}.AsMechanism(), trusting, ""},
		{"SCRAM-SHA-256", h.secure, right.AsSha256Mechanism(), trusting, ""},
		{"SCRAM-SHA-512", h.secure, right.AsSha512Mechanism(), trusting, ""},
		{"a wrong password", h.secure, plain.Auth{User: user, Pass: "wrong"}.AsMechanism(), trusting, "SASL_AUTHENTICATION"},
		{"a server nobody trusts", h.secure, right.AsSha256Mechanism(), &tls.Config{MinVersion: tls.VersionTLS12}, "x509"},
		{"TLS to a server without", h.proxy.Address(), right.AsSha256Mechanism(), trusting, "TLS"},
		{"no TLS to a server with", h.secure, right.AsSha256Mechanism(), nil, "tls"},
		{"no login", h.proxy.Address(), nil, nil, "closed"},
	} {
		publisher, err := kafka.NewPublisher(kafka.Cluster{Brokers: []string{c.address}, Login: c.login, TLS: c.tls},
			kafka.PublisherConfig{})
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		if c.wrong != "" {
			cancel()
			ctx, cancel = context.WithTimeout(t.Context(), 2*time.Second)
		}
		err = publisher.Publish(ctx, relaytest.NewMessage(topic, 1, 1))
		cancel()
		switch class := publish.ClassOf(err); {
		case c.wrong == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.wrong != "" && (class != publish.TopicFault || !strings.Contains(err.Error(), c.wrong)):
			t.Errorf("%s: class %s, want a TopicError with %q: %v", c.name, class, c.wrong, err)
		case err != nil && strings.Contains(err.Error(), password):
			t.Errorf("%s: the error has the password", c.name)
		}
		if err := publisher.Close(); err != nil {
			t.Error(err)
		}
	}
}

// partitionsGrow: a key may move to another partition when there are more. The publisher sends nothing of it there
// before all that it had sent to the old one is acknowledged, so at every moment the events of a key were stored in
// order; who reads the partitions side by side can still meet the new one first.
func partitionsGrow(t *testing.T, h *harness) {
	topic := "growing"
	if err := h.make(t.Context(), topic); err != nil {
		t.Fatal(err)
	}
	publisher, closeIt, err := h.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeIt() }()
	send := func(from, to int64) {
		t.Helper()
		for seq := from; seq <= to; seq++ {
			for key := range 8 {
				ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
				if err := publisher.Publish(ctx, relaytest.NewMessage(topic, key, seq)); err != nil {
					t.Fatal(err)
				}
				cancel()
			}
		}
	}
	send(1, 3)
	if _, err := h.admin.CreatePartitions(t.Context(), 2*partitions, topic); err != nil {
		t.Fatal(err)
	}
	// A broker that was restarted is one way to learn of them, and an age of a minute is the other. Here a topic's
	// table is read again because the connection is lost with a batch under way.
	moved := func() (is bool, err error) {
		h.proxy.HangUp()
		send(4, 4)
		ends, err := h.admin.ListEndOffsets(t.Context(), topic)
		if err != nil {
			return false, err
		}
		ends.Each(func(end kadm.ListedOffset) { is = is || end.Partition >= partitions && end.Offset > 0 })
		return is, nil
	}
	err = eventually.Within(t.Context(), eventually.Patience, "a key has moved to a new partition", moved)
	if err != nil {
		t.Fatal(err)
	}
}

// check: what an operator should know of a topic before events come.
func check(t *testing.T, h *harness) {
	publisher, err := kafka.NewPublisher(h.cluster(), kafka.PublisherConfig{})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = publisher.Close() }()
	if err := errors.Join(h.make(t.Context(), "checked"), h.make(t.Context(), "forbidden")); err != nil {
		t.Fatal(err)
	}
	if _, err := h.deny(t.Context(), "forbidden"); err != nil {
		t.Fatal(err)
	}
	findings, err := publisher.Check(t.Context(), []string{"checked", "missing", "forbidden", "no topic"})
	if err != nil {
		t.Fatal(err)
	}
	var codes []string
	for _, finding := range findings {
		codes = append(codes, finding.Code)
	}
	want := fmt.Sprint([]string{
		kafka.OneReplica, kafka.TopicMissing, kafka.TopicForbidden, kafka.OneReplica, kafka.TopicInvalid,
	})
	if got := fmt.Sprint(codes); got != want {
		t.Errorf("findings %s, want %s: %v", got, want, findings)
	}
}
