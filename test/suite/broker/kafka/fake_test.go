package kafka

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"github.com/posthaste-dev/posthaste/broker/kafka"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// fake is a cluster that speaks the protocol and fails when it is told to.
type fake struct {
	*kfake.Cluster
	admin  *kadm.Client
	config kafka.PublisherConfig
	// silent: the answer does not say which record of a batch is at fault, as brokers before 2.4.
	silent bool
	// batches counts the requests that were refused for a message.
	batches atomic.Int64
}

func newFake(t *testing.T) *fake {
	t.Helper()
	cluster, err := kfake.NewCluster(kfake.NumBrokers(2))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cluster.Close)
	client, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...), kgo.MetadataMinAge(20*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	// What is refused is looked for in the bytes of a batch.
	return &fake{
		Cluster: cluster, admin: kadm.NewClient(client), config: kafka.PublisherConfig{Compression: "none"},
	}
}

func (f *fake) open(context.Context) (publish.Publisher, func() error, error) {
	publisher, err := kafka.NewPublisher(kafka.Cluster{Brokers: f.ListenAddrs()}, f.config)
	if err != nil {
		return nil, nil, err
	}
	return publisher, publisher.Close, nil
}

func (f *fake) makeTopic(ctx context.Context, topic string) error {
	_, err := f.admin.CreateTopic(ctx, partitions, 1, nil, topic)
	return err
}

func (f *fake) removeTopic(ctx context.Context, topic string) error {
	_, err := f.admin.DeleteTopic(ctx, topic)
	return err
}

func (f *fake) arrived(ctx context.Context, topic string) ([]relaytest.Arrived, error) {
	records, err := readAll(ctx, f.ListenAddrs()[0], f.admin, topic)
	return arrivals(records), err
}

// reject refuses every batch that has this message.
func (f *fake) reject(_ context.Context, _ string, id outbox.ID) (func(context.Context) error, error) {
	var over atomic.Bool
	f.ControlKey(int16(kmsg.Produce), func(request kmsg.Request) (kmsg.Response, error, bool) {
		if over.Load() {
			f.DropControl()
			return nil, nil, false
		}
		f.KeepControl()
		answer, is := f.rejection(request.(*kmsg.ProduceRequest), id.String())
		return answer, nil, is
	})
	return func(context.Context) error {
		over.Store(true)
		return nil
	}, nil
}

func (f *fake) rejection(request *kmsg.ProduceRequest, id string) (answer kmsg.Response, is bool) {
	topic := request.Topics[0]
	part := topic.Partitions[0]
	if !bytes.Contains(part.Records, []byte(id)) {
		return nil, false
	}
	f.batches.Add(1)
	said := kmsg.NewProduceResponseTopicPartition()
	said.Partition, said.ErrorCode = part.Partition, kerr.InvalidRecord.Code
	if !f.silent {
		why := "it is the wrong one"
		said.ErrorRecords = []kmsg.ProduceResponseTopicPartitionErrorRecord{
			{RelativeOffset: int32(indexOf(part.Records, id)), ErrorMessage: &why},
		}
	}
	about := kmsg.NewProduceResponseTopic()
	about.Topic, about.TopicID, about.Partitions = topic.Topic, topic.TopicID, append(about.Partitions, said)
	response := request.ResponseKind().(*kmsg.ProduceResponse)
	response.Topics = append(response.Topics, about)
	return response, true
}

// indexOf finds the record with this text in a batch.
func indexOf(batch []byte, text string) int {
	const header = 61
	for place, left := 0, batch[header:]; len(left) > 0; place++ {
		length, size := varint(left)
		if bytes.Contains(left[size:size+length], []byte(text)) {
			return place
		}
		left = left[size+length:]
	}
	return -1
}

func varint(text []byte) (number, size int) {
	var all uint64
	for shift := 0; ; shift += 7 {
		all |= uint64(text[size]&0x7f) << shift
		if size++; text[size-1] < 0x80 {
			return int(all >> 1), size
		}
	}
}

// loseAck has the cluster store what it gets and say that it took too long.
func (f *fake) loseAck(_ context.Context, topic string) (func(context.Context) error, error) {
	lost := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: -1})
	return func(context.Context) error {
		lost.Remove()
		if lost.Hits() == 0 {
			return fmt.Errorf("no acknowledgement of %s was lost", topic)
		}
		return nil
	}, nil
}

func (f *fake) suite() relaytest.Harness {
	const shown = "the suite with the real server shows it"
	return relaytest.Harness{
		Open: f.open, MakeTopic: f.makeTopic, RemoveTopic: f.removeTopic, Arrived: f.arrived,
		RejectMessage: f.reject, LoseAck: f.loseAck,
		Deadline: eventually.Patience, Grace: time.Minute, Recovery: eventually.Patience,
		Cannot: map[relaytest.Ability]string{
			relaytest.Limit: shown, relaytest.Stop: shown, relaytest.Slow: shown, relaytest.Hang: shown,
			relaytest.DenyAuth: shown, relaytest.Abandon: shown,
			relaytest.Dedupe: "what was given up and comes again is a new batch",
		},
	}
}

func TestFake(t *testing.T) {
	t.Parallel()
	relaytest.TestPublisher(t, newFake(t).suite())
}

// TestTheBrokerDoesNotSayWhichRecord: then it is found by sending parts of the batch.
func TestTheBrokerDoesNotSayWhichRecord(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	f.silent = true
	only(t, f.suite(), "one bad message among good ones/rejected", "pipeline/rejected in the middle")
	if f.batches.Load() < 2 {
		t.Errorf("%d batches were refused: the message was alone from the start, and nothing was shown", f.batches.Load())
	}
}

// publishAll hands messages over without waiting, and returns what became of each.
func publishAll(ctx context.Context, publisher publish.Pipeliner, messages ...*publish.Message) []error {
	answers := make([]chan error, len(messages))
	for i, message := range messages {
		answers[i] = make(chan error, 1)
		publisher.Enqueue(ctx, message, func(err error) { answers[i] <- err })
	}
	results := make([]error, len(messages))
	for i := range answers {
		results[i] = <-answers[i]
	}
	return results
}

// TestALostAcknowledgementIsAskedForAgain: the batch is stored, its answer is not given, and the next try finds it
// there: one record each.
func TestALostAcknowledgementIsAskedForAgain(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	if err := f.makeTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	publisher, closeIt, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeIt() }()
	lost := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: 3})
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	var messages []*publish.Message
	for seq := range int64(50) {
		messages = append(messages, relaytest.NewMessage("orders", int(seq%5), seq))
	}
	for i, err := range publishAll(ctx, publisher.(publish.Pipeliner), messages...) {
		if err != nil {
			t.Errorf("event %d: %v", i, err)
		}
	}
	if lost.Hits() != 3 {
		t.Errorf("%d acknowledgements were lost, want 3", lost.Hits())
	}
	if arrived, err := f.arrived(t.Context(), "orders"); err != nil || len(arrived) != len(messages) {
		t.Errorf("%d records of %d events: %v", len(arrived), len(messages), err)
	}
}

// TestFaultsAndWhatFollows: what each error of a broker means, alone and for what is behind it.
func TestFaultsAndWhatFollows(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err  *kerr.Error
		once publish.Class // of the first message when the error comes once
		says string
	}{
		{kerr.NotLeaderForPartition, publish.Published, ""},
		{kerr.NotEnoughReplicas, publish.Published, ""},
		{kerr.NotEnoughReplicasAfterAppend, publish.Published, ""},
		{kerr.KafkaStorageError, publish.Published, ""},
		{kerr.InvalidProducerEpoch, publish.Published, ""},
		{kerr.MessageTooLarge, publish.Terminal, "max.message.bytes"},
		{kerr.InvalidRecord, publish.Rejected, ""},
		{kerr.InvalidTimestamp, publish.Rejected, ""},
		{kerr.TopicAuthorizationFailed, publish.TopicFault, "orders"},
		{kerr.PolicyViolation, publish.TopicFault, "orders"},
		{kerr.OutOfOrderSequenceNumber, publish.TopicFault, "acknowledged messages are lost"},
		{kerr.InvalidPartitions, publish.Unknown, "orders"}, // no broker answers so
	} {
		t.Run(c.err.Message, func(t *testing.T) {
			t.Parallel()
			f := newFake(t)
			if err := f.makeTopic(t.Context(), "orders"); err != nil {
				t.Fatal(err)
			}
			publisher, closeIt, err := f.open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = closeIt() }()
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
			defer cancel()
			if err := publisher.Publish(ctx, relaytest.NewMessage("orders", 1, 1)); err != nil {
				t.Fatal(err)
			}
			fault := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: c.err})
			err = publisher.Publish(ctx, relaytest.NewMessage("orders", 1, 2))
			if class := publish.ClassOf(err); class != c.once {
				t.Errorf("class %s, want %s: %v", class, c.once, err)
			}
			if err != nil && !strings.Contains(err.Error(), c.says) {
				t.Errorf("the error does not say %q: %v", c.says, err)
			}
			if fault.Hits() != 1 {
				t.Errorf("the fault was met %d times", fault.Hits())
			}
			err = publisher.Publish(ctx, relaytest.NewMessage("orders", 1, 3))
			if lost := errors.Is(err, kafka.ErrDataLoss); err != nil != lost ||
				lost != (c.err == kerr.OutOfOrderSequenceNumber) {
				t.Errorf("after it: %v", err)
			}
		})
	}
}

// TestDataLossStopsTheTopic: nothing more is sent, of no key, until the publisher is made anew; another topic goes on.
func TestDataLossStopsTheTopic(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	if err := errors.Join(f.makeTopic(t.Context(), "orders"), f.makeTopic(t.Context(), "invoices")); err != nil {
		t.Fatal(err)
	}
	for _, goOn := range []bool{false, true} {
		f.config.ContinueAfterDataLoss = goOn
		publisher, closeIt, err := f.open(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		for key := range 8 {
			if err := publisher.Publish(ctx, relaytest.NewMessage("orders", key, 1)); err != nil {
				t.Fatal(err)
			}
		}
		f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.OutOfOrderSequenceNumber})
		for key := range 8 {
			err := publisher.Publish(ctx, relaytest.NewMessage("orders", key, 2))
			if lost := errors.Is(err, kafka.ErrDataLoss); lost == goOn || !goOn && publish.ClassOf(err) != publish.TopicFault {
				t.Errorf("key %d, to go on is %v: %v", key, goOn, err)
			}
		}
		if err := publisher.Publish(ctx, relaytest.NewMessage("invoices", 1, 1)); err != nil {
			t.Errorf("another topic: %v", err)
		}
		if err := closeIt(); err != nil {
			t.Error(err)
		}
	}
}

// TestGivenUpInTheMiddle: messages whose time is over while a batch is under way; those of the same partition with
// more time arrive, in order.
func TestGivenUpInTheMiddle(t *testing.T) {
	t.Parallel()
	f := newFake(t)
	if err := f.makeTopic(t.Context(), "orders"); err != nil {
		t.Fatal(err)
	}
	publisher, closeIt, err := f.open(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = closeIt() }()
	pipeliner := publisher.(publish.Pipeliner)
	long, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	fault := f.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Err: kerr.RequestTimedOut, Count: -1})
	short, end := context.WithCancel(t.Context())
	results := make(chan error, 40)
	for seq := range int64(40) {
		ctx := long
		if seq%4 == 0 { // all of one key
			ctx = short
		}
		pipeliner.Enqueue(ctx, relaytest.NewMessage("orders", int(seq%4), seq), func(err error) {
			if ctx == short {
				results <- err
			}
		})
	}
	if err := fault.Wait(t.Context(), 2); err != nil {
		t.Fatal(err)
	}
	end()
	for range 10 {
		if class := publish.ClassOf(eventually.Receive(t, "an answer", results)); !slices.Contains([]publish.Class{
			publish.TopicFault, publish.NotSent,
		}, class) {
			t.Errorf("given up: class %s", class)
		}
	}
	fault.Remove()
	if err := closeIt(); err != nil { // it waits for the others
		t.Fatal(err)
	}
	arrived, err := f.arrived(t.Context(), "orders")
	if err != nil {
		t.Fatal(err)
	}
	latest := map[string]string{}
	seen := map[string]bool{}
	for _, a := range arrived {
		if at := fmt.Sprintf("%03s", a.Attributes["outbox_seq"]); !seen[at] {
			if at < latest[a.Key] {
				t.Errorf("%s: event %s arrived behind event %s", a.Key, at, latest[a.Key])
			}
			seen[at], latest[a.Key] = true, at
		}
	}
	for seq := range 40 {
		if seq%4 != 0 && !seen[fmt.Sprintf("%03d", seq)] {
			t.Errorf("event %d, which had the time, is not there", seq)
		}
	}
}
