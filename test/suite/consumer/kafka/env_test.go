// Package kafka_test runs the consumer's loop against a real Kafka, with PostgreSQL where the effect is what matters.
// Each test has topics and a group of its own, so all share the server of `make services`.
package kafka_test

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/posthaste-dev/posthaste/broker/kafka"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

func TestMain(m *testing.M) {
	if os.Getenv(childTopic) != "" {
		child()
		return
	}
	os.Exit(goroutines.Run(m))
}

// shortSession is the shortest that a server takes.
const shortSession = 6 * time.Second

// license is the events' payload: the n-th change of an aggregate.
type license struct {
	N int `json:"n"`
}

var changed = outbox.Define[license](outbox.Contract{
	Type: "license_changed", Version: 1, Aggregate: "license", Topic: "licenses",
})

var errPlanned = errors.New("a planned failure")

// env is a topic of events, one for dead letters, a group, and a publisher.
type env struct {
	t                    *testing.T
	topic, letters, name string
	admin                *kadm.Client
	publisher            *kafka.Publisher
	seen                 seen
	log                  server.Output
	seq                  int64
}

func newEnv(t *testing.T, partitions int32) *env {
	t.Helper()
	name := "c-" + strings.ToLower(rand.Text()[:10])
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Kafka()), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	w := &env{t: t, topic: name, letters: name + "-dead", name: name, admin: kadm.NewClient(client)}
	w.makeTopic(w.topic, partitions)
	w.makeTopic(w.letters, 1)
	if w.publisher, err = kafka.NewPublisher(cluster(), kafka.PublisherConfig{}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = w.publisher.Close() })
	return w
}

func cluster() kafka.Cluster { return kafka.Cluster{Brokers: []string{services.Kafka()}} }

func (w *env) makeTopic(topic string, partitions int32) {
	w.t.Helper()
	if _, err := w.admin.CreateTopic(w.patient(), partitions, 1, nil, topic); err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
		defer cancel()
		_, _ = w.admin.DeleteTopic(ctx, topic)
	})
	eventually.True(w.t, "the topic is there", func() bool {
		about, err := w.admin.ListTopics(w.patient(), topic)
		return err == nil && len(about[topic].Partitions) == int(partitions)
	})
}

// patient is for questions to the server.
func (w *env) patient() context.Context {
	ctx, cancel := context.WithTimeout(w.t.Context(), eventually.Patience)
	w.t.Cleanup(cancel)
	return ctx
}

// message is the n-th event of an aggregate, as a relay would publish it.
func (w *env) message(aggregate string, n int) *publish.Message {
	w.t.Helper()
	data, err := json.Marshal(license{N: n})
	if err != nil {
		w.t.Fatal(err)
	}
	id := outbox.NewID()
	body, err := json.Marshal(outbox.Envelope{Version: 1, EventID: id, OccurredAt: time.Now().UTC(), Data: data})
	if err != nil {
		w.t.Fatal(err)
	}
	w.seq++
	return &publish.Message{
		ID: id, Topic: w.topic, Key: "license/" + aggregate, Body: body, Seq: w.seq,
		Attributes: map[string]string{
			"event_id": id.String(), "event_type": "license_changed", "aggregate_type": "license",
			"aggregate_id": aggregate, "outbox_seq": strconv.FormatInt(w.seq, 10),
			"created_at": time.Now().UTC().Format(time.RFC3339Nano), "note": " kept as it is ",
		},
	}
}

func (w *env) publish(message *publish.Message) outbox.ID {
	w.t.Helper()
	if err := w.publisher.Publish(w.patient(), message); err != nil {
		w.t.Fatal(err)
	}
	return message.ID
}

func (w *env) emit(aggregate string, n int) outbox.ID {
	w.t.Helper()
	return w.publish(w.message(aggregate, n))
}

// consumer makes the consumer of a handler; what becomes of its messages is seen.
func (w *env) consumer(config consumer.Config,
	handle func(ctx context.Context, event *consumer.Event, payload license) error,
) *consumer.Consumer {
	w.t.Helper()
	config.Name, config.Observe = w.name, w.seen.observe
	config.Logger = slog.New(slog.NewTextHandler(io.MultiWriter(w.t.Output(), &w.log), nil))
	c, err := consumer.New(config, consumer.On(changed, handle))
	if err != nil {
		w.t.Fatal(err)
	}
	return c
}

// run runs a loop until the test ends or calls stop.
func (w *env) run(c *consumer.Consumer, changes ...func(*kafka.ConsumeConfig)) (stop func()) {
	w.t.Helper()
	config := kafka.ConsumeConfig{Topics: []string{w.topic}, DeadLetters: w.letters, CommitInterval: 50 * time.Millisecond}
	for _, change := range changes {
		change(&config)
	}
	return background.Run(w.t, "the loop", func(ctx context.Context) error {
		return kafka.Consume(ctx, cluster(), c, config)
	})
}

// letting returns what lets handlers go on that wait for the channel to be closed. It is called at the latest before
// the loops that ran until now are stopped.
func (w *env) letting(release chan struct{}) (let func()) {
	let = sync.OnceFunc(func() { close(release) })
	w.t.Cleanup(let)
	return let
}

// committed is what the group remembers, by partition.
func (w *env) committed() map[int32]int64 {
	w.t.Helper()
	answer, err := w.admin.FetchOffsets(w.patient(), w.name)
	if err != nil {
		return nil // the group has no coordinator yet
	}
	all := map[int32]int64{}
	answer.Each(func(o kadm.OffsetResponse) {
		if o.Topic == w.topic && o.At >= 0 {
			all[o.Partition] = o.At
		}
	})
	return all
}

// done returns when the group remembers all that is in the topic.
func (w *env) done() {
	w.t.Helper()
	ends, err := w.admin.ListEndOffsets(w.patient(), w.topic)
	if err != nil {
		w.t.Fatal(err)
	}
	eventually.True(w.t, "all of it is committed", func() bool {
		committed, all := w.committed(), true
		ends.Each(func(end kadm.ListedOffset) { all = all && committed[end.Partition] == end.Offset })
		return all
	}, func() string { return fmt.Sprint(w.committed()) })
}

// deadLetters reads so many of them.
func (w *env) deadLetters(count int) (all []*kgo.Record) {
	w.t.Helper()
	if count == 0 {
		return nil
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(services.Kafka()), kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{
		w.letters: {0: kgo.NewOffset().At(0)},
	}))
	if err != nil {
		w.t.Fatal(err)
	}
	defer client.Close()
	for len(all) < count {
		fetches := client.PollFetches(w.patient())
		if err := fetches.Err(); err != nil {
			w.t.Fatal(err)
		}
		all = append(all, fetches.Records()...)
	}
	return all
}

// countLetters is how many dead letters there are.
func (w *env) countLetters() int64 {
	w.t.Helper()
	ends, err := w.admin.ListEndOffsets(w.patient(), w.letters)
	if err != nil {
		w.t.Fatal(err)
	}
	end, _ := ends.Lookup(w.letters, 0)
	return end.Offset
}

// seen is what became of messages.
type seen struct {
	mu  sync.Mutex
	all []consumer.Observation
}

func (s *seen) observe(_ context.Context, observation consumer.Observation) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all = append(s.all, observation)
}

// count is how often this became of an event; of any for a zero id.
func (s *seen) count(event outbox.ID, outcome consumer.Outcome) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := 0
	for _, o := range s.all {
		if (event == outbox.ID{} || o.Event.ID == event) && o.Outcome == outcome {
			n++
		}
	}
	return n
}

// anyEvent is for [seen.count].
var anyEvent outbox.ID
