package kafka

import (
	"context"
	"log/slog"
	"strconv"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// The headers that a dead letter has besides the message's own.
const (
	AttributeConsumer  = "dead_letter_consumer" // the consumer's name
	AttributeReason    = "dead_letter_reason"   // why
	AttributeAttempts  = "dead_letter_attempts" // how often it was handled by the process that gave it up
	AttributeTopic     = "dead_letter_topic"    // where it was
	AttributePartition = "dead_letter_partition"
	AttributeOffset    = "dead_letter_offset"
)

const (
	// deadLetterTimeout is how long the topic has to take a dead letter.
	deadLetterTimeout = 10 * time.Second
	// deadLetterAgain is when a dead letter is tried again that was not taken.
	deadLetterAgain = 10 * time.Second
)

// line handles a message and those that come behind it, one after the other.
func (l *loop) line(a *assigned, d *delivery) {
	if a.before != nil { // a handler of this aggregate may still run
		select {
		case <-a.before.idle:
		case <-a.handling.Done():
		}
	}
	for d != nil && l.settle(a, d) {
		d = a.finish(d)
		l.turn(a)
	}
}

// settle handles a message until it is done. False: the partition is given back, and the message with it.
//
// Kafka counts no deliveries and gives nothing back for later, so the message waits here, and what is behind it of its
// aggregate too.
func (l *loop) settle(a *assigned, d *delivery) bool {
	for attempt := 1; ; attempt++ {
		verdict := l.handle(a.handling, d, attempt)
		after := verdict.After
		switch verdict.Outcome {
		case consumer.Handled, consumer.Duplicate, consumer.Ignored:
			return true
		case consumer.Delayed:
			return false
		case consumer.Failed, consumer.Unknown: // of an unknown type: until a process has the partition that knows it
		case consumer.Poisoned:
			for !l.deadLetter(a.handling, d, verdict.Reason, attempt) {
				if wait.For(a.handling, deadLetterAgain) != nil {
					return false
				}
			}
			return true
		}
		if wait.For(a.handling, after) != nil {
			return false
		}
	}
}

// handle runs the handler when it is its turn. While a message waits to be handled again, others have its place.
func (l *loop) handle(ctx context.Context, d *delivery, attempt int) consumer.Verdict {
	if !l.begin(ctx) {
		return consumer.Verdict{Outcome: consumer.Delayed}
	}
	running := true
	defer func() {
		if running {
			<-l.slots
		}
	}()
	pause := func(ctx context.Context, length time.Duration) error {
		<-l.slots
		running = false
		if err := wait.For(ctx, length); err != nil {
			return err
		}
		if running = l.begin(ctx); !running {
			return context.Cause(ctx)
		}
		return nil
	}
	return l.consumer.ProcessWith(ctx, d.attributes, d.record.Value, attempt, pause)
}

// begin waits for a place among those that run, and tells whether there is one before ctx ends.
func (l *loop) begin(ctx context.Context) bool {
	select {
	case l.slots <- struct{}{}:
	case <-ctx.Done():
		return false
	}
	if ctx.Err() != nil {
		<-l.slots
		return false
	}
	return true
}

// deadLetter publishes a message to the dead letters and tells whether they have it.
func (l *loop) deadLetter(ctx context.Context, d *delivery, reason string, attempts int) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadLetterTimeout)
	defer cancel()
	letter := &kgo.Record{Topic: l.config.DeadLetters, Key: d.record.Key, Value: d.record.Value}
	letter.Headers = append(append(letter.Headers, d.record.Headers...), l.deadLetterHeaders(d, reason, attempts)...)
	if err := l.client.ProduceSync(ctx, letter).FirstErr(); err != nil {
		l.log.ErrorContext(ctx, "a dead letter is not published, and its message waits: see that the topic is there, takes "+
			"messages of this size and that writing to it is allowed", slog.String("topic", l.config.DeadLetters),
			slog.String("event_id", clean.Cut(d.attributes["event_id"])), slog.String("error", clean.Error(err)))
		return false
	}
	return true
}

func (l *loop) deadLetterHeaders(d *delivery, reason string, attempts int) (headers []kgo.RecordHeader) {
	for _, header := range [][2]string{
		{AttributeConsumer, l.consumer.Name()},
		{AttributeReason, reason},
		{AttributeAttempts, strconv.Itoa(attempts)},
		{AttributeTopic, d.record.Topic},
		{AttributePartition, strconv.Itoa(int(d.record.Partition))},
		{AttributeOffset, strconv.FormatInt(d.record.Offset, 10)},
	} {
		headers = append(headers, kgo.RecordHeader{Key: header[0], Value: []byte(header[1])})
	}
	return headers
}
