package natsjetstream

import (
	"context"
	"log/slog"
	"maps"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/internal/clean"
)

// The attributes that a dead letter has besides the message's own.
const (
	AttributeConsumer = "dead_letter_consumer" // the consumer's name
	AttributeReason   = "dead_letter_reason"   // why
	AttributeAttempts = "dead_letter_attempts" // how often it was delivered
	AttributeSubject  = "dead_letter_subject"  // where it was
	AttributeStream   = "dead_letter_stream"
	AttributeSequence = "dead_letter_sequence"
)

const (
	// deadLetterTimeout is how long the stream has to take a dead letter.
	deadLetterTimeout = 10 * time.Second
	// deadLetterAgain is when a message comes again whose dead letter was not taken.
	deadLetterAgain = 10 * time.Second
)

// line handles a message and those that come behind it, one after the other.
func (l *loop) line(ctx context.Context, d *delivery) {
	for ; d != nil; d = l.held.next(d) {
		l.settle(ctx, d, l.handle(ctx, d))
	}
}

// handle runs the handler when it is its turn. When ctx has ended before, the message is for whoever is next.
func (l *loop) handle(ctx context.Context, d *delivery) consumer.Verdict {
	select {
	case l.slots <- struct{}{}:
		defer func() { <-l.slots }()
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return consumer.Verdict{Outcome: consumer.Delayed}
	}
	return l.consumer.Process(ctx, d.attributes, d.message.Data(), int(d.meta.NumDelivered))
}

// settle tells the server what became of a message.
//
// It does not wait for the server to confirm: an acknowledgement that is lost and one whose confirmation is lost look
// alike, the message comes again either way, and the inbox knows it. So a confirmation would cost every message a round
// trip, and save nobody the inbox.
func (l *loop) settle(ctx context.Context, d *delivery, verdict consumer.Verdict) {
	answer := d.message.Nak
	switch verdict.Outcome {
	case consumer.Handled, consumer.Duplicate, consumer.Ignored:
		answer = d.message.Ack
	case consumer.Delayed: // others have it at once
	case consumer.Failed, consumer.Unknown: // of an unknown type: by then another process may have it
		answer = later(d, verdict.After)
	case consumer.Poisoned:
		// It is given up when the stream has the letter, and not before.
		answer = later(d, deadLetterAgain)
		if l.deadLetter(ctx, d, verdict.Reason) {
			answer = d.message.Term
		}
	}
	l.held.drop(d)
	if err := answer(); err != nil {
		l.log.WarnContext(ctx, "the server could not be told what became of a message: it comes again",
			slog.String("event_id", clean.Cut(d.attributes["event_id"])), slog.String("outcome", string(verdict.Outcome)),
			slog.String("error", clean.Error(err)))
	}
}

func later(d *delivery, after time.Duration) func() error {
	return func() error { return d.message.NakWithDelay(after) }
}

// deadLetter publishes a message to the dead letters and tells whether they have it.
func (l *loop) deadLetter(ctx context.Context, d *delivery, reason string) bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), deadLetterTimeout)
	defer cancel()
	letter := &nats.Msg{Subject: l.config.DeadLetters, Header: l.deadLetterHeader(d, reason), Data: d.message.Data()}
	if _, err := l.js.PublishMsg(ctx, letter); err != nil {
		l.log.ErrorContext(ctx, "a dead letter is not published, and its message comes again: see that a stream has the "+
			"subject and that publishing is allowed",
			slog.String("subject", l.config.DeadLetters), slog.String("event_id", clean.Cut(d.attributes["event_id"])),
			slog.String("error", clean.Error(err)))
		return false
	}
	return true
}

func (l *loop) deadLetterHeader(d *delivery, reason string) nats.Header {
	header := maps.Clone(d.message.Headers())
	if header == nil {
		header = nats.Header{}
	}
	// What told the server something about the message is not true of the letter.
	maps.DeleteFunc(header, func(name string, _ []string) bool { return isReserved(name) })
	sequence := strconv.FormatUint(d.meta.Sequence.Stream, 10)
	for name, value := range map[string]string{
		AttributeConsumer: l.consumer.Name(), AttributeReason: headerValue(reason),
		AttributeAttempts: strconv.FormatUint(d.meta.NumDelivered, 10),
		AttributeSubject:  d.message.Subject(), AttributeStream: d.meta.Stream, AttributeSequence: sequence,
		// The same for the same message: a crash before the message is given up does not make two letters of it. With its
		// time, because a stream that is made anew counts from 1.
		jetstream.MsgIDHeader: strings.Join([]string{
			l.consumer.Name(), d.meta.Stream, sequence, strconv.FormatInt(d.meta.Timestamp.UnixNano(), 10),
		}, "/"),
	} {
		header[name] = []string{value}
	}
	return header
}
