package relay

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"strconv"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/internal/measure"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// sender hands events to the publisher: it checks the contract, builds the message, keeps the deadline and
// says whose fault a failure is.
type sender struct {
	config    *Config
	clock     *clock
	work      context.Context //nolint:containedctx // ends the goroutines below
	running   *sync.WaitGroup
	results   chan<- result
	jobs      chan *core.Publish // has room for all that can be in flight
	workers   int
	inFlight  int // begun and not answered, as the loop sees it
	shards    []chan *core.Publish
	seed      maphash.Seed
	deadline  deadline
	suspects  suspects
	unchecked bool // for measurements
}

// shards is how many goroutines hand events to a pipeliner. Those of one aggregate go through the same one,
// and so stay in order.
const shards = 8

func newSender(ctx context.Context, config *Config, clock *clock, running *sync.WaitGroup,
	results chan<- result,
) *sender {
	s := &sender{
		config: config, clock: clock, work: ctx, running: running, results: results,
		jobs: make(chan *core.Publish, config.Concurrency), seed: maphash.MakeSeed(),
		suspects:  suspects{most: 2 * config.MaxInFlight}, // more do not go round in memory
		unchecked: measure.Of(ctx).NoContractCheck,
	}
	return s
}

// depth is how many events of one aggregate may be in flight to a topic.
func (s *sender) depth(topic string) int {
	if pipeliner, is := s.config.publisherOf(topic).(publish.Pipeliner); is {
		return max(1, pipeliner.Depth())
	}
	return 1
}

// send begins publishes. Every one is answered with one result.
func (s *sender) send(publishes []*core.Publish) {
	for i, p := range publishes {
		if i > 0 {
			crash.Point("publish.mid_batch")
		}
		s.inFlight++
		if _, is := s.config.publisherOf(p.Topic).(publish.Pipeliner); is {
			s.shard(p) <- p
			continue
		}
		// Goroutines are kept: a new one would have to grow its stack for every event.
		if s.inFlight > s.workers && s.workers < s.config.Concurrency {
			s.workers++
			s.running.Go(s.worker)
		}
		s.jobs <- p
	}
}

func (s *sender) worker() {
	for {
		select {
		case p := <-s.jobs:
			s.results <- result{publish: p, outcome: s.publish(s.deadline.context(s.work, s.config.Deadline), p)}
		case <-s.work.Done():
			return
		}
	}
}

// deadline hands out contexts that end at the publish deadline, or a little before: those of publishes that
// begin close together are one, because a context of its own costs as much as a fast publish.
type deadline struct {
	mutex   sync.Mutex
	current context.Context //nolint:containedctx // shared by the publishes of a moment
	cancel  context.CancelFunc
	until   time.Time
}

// moments is how many contexts are made in the time of one deadline.
const moments = 20

func (d *deadline) context(parent context.Context, timeout time.Duration) context.Context {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if now := time.Now(); d.current == nil || now.After(d.until) {
		if d.cancel != nil {
			time.AfterFunc(timeout, d.cancel) // when all that have it are done
		}
		//nolint:gosec // cancelled above, a deadline after it was replaced
		d.current, d.cancel = context.WithTimeout(parent, timeout)
		d.until = now.Add(timeout / moments)
	}
	return d.current
}

// publish publishes one event. The results channel has room for all that can be in flight.
func (s *sender) publish(ctx context.Context, p *core.Publish) (outcome core.Outcome) {
	defer func() {
		if cause := recover(); cause != nil { // one bad event must not stop the others
			outcome = s.panicked(p, cause)
		}
	}()
	message, failure := s.message(p)
	if failure != nil {
		return *failure
	}
	beforeSend(p)
	err := s.config.publisherOf(p.Topic).Publish(ctx, message)
	if err == nil {
		afterAck(p)
	}
	return s.answered(p, err)
}

// beforeSend and afterAck are crash points of a publish: a copy has its own.
func beforeSend(p *core.Publish) {
	if p.Request != 0 {
		crash.Point("copy.before_send")
	} else {
		crash.Point("publish.before_send")
	}
}

func afterAck(p *core.Publish) {
	if p.Request != 0 {
		crash.Point("copy.after_ack")
	} else {
		crash.Point("publish.after_ack")
	}
}

// shard is the queue of the event's aggregate.
func (s *sender) shard(p *core.Publish) chan<- *core.Publish {
	if s.shards == nil {
		for range shards {
			shard := make(chan *core.Publish, s.config.Concurrency) // has room for all that can be in flight
			s.shards = append(s.shards, shard)
			s.running.Go(func() { s.pipeline(shard) })
		}
	}
	return s.shards[maphash.Comparable(s.seed, p.Event.Aggregate)%shards]
}

// lineOf names what is kept in order.
type lineOf struct {
	aggregate core.Aggregate
	topic     string
}

// pipeline hands over the events of a shard. An event that fails at the broker makes the broker fail the later ones of
// its aggregate and topic. Of an event that was never sent the broker knows nothing: it would take the later ones, and
// break the order. So they are held back here.
func (s *sender) pipeline(shard <-chan *core.Publish) {
	unsent := map[lineOf]time.Time{}
	for {
		select {
		case p := <-shard:
			line := lineOf{p.Event.Aggregate, p.Topic}
			if p.First {
				delete(unsent, line)
			}
			if _, is := unsent[line]; is {
				s.results <- result{publish: p, outcome: core.Outcome{Class: core.NotSent, Detail: "one before it was not sent"}}
			} else if pipeliner, is := s.config.publisherOf(p.Topic).(publish.Pipeliner); is && !s.enqueue(pipeliner, p) {
				unsent[line] = time.Now()
				s.forgetUnsent(unsent)
			}
		case <-s.work.Done():
			return
		}
	}
}

// forgetUnsent drops lines of which nothing can be in flight any more, when there are many.
func (s *sender) forgetUnsent(unsent map[lineOf]time.Time) {
	if len(unsent) < 10*s.config.Concurrency {
		return
	}
	for line, at := range unsent {
		if time.Since(at) > 2*s.config.Deadline {
			delete(unsent, line)
		}
	}
}

// enqueue hands one event to the pipeliner, and tells whether it did.
func (s *sender) enqueue(pipeliner publish.Pipeliner, p *core.Publish) (sent bool) {
	var once sync.Once
	done := func(outcome core.Outcome) {
		once.Do(func() { s.results <- result{publish: p, outcome: outcome} })
	}
	defer func() {
		if cause := recover(); cause != nil {
			sent = false
			done(s.panicked(p, cause))
		}
	}()
	message, failure := s.message(p)
	if failure != nil {
		done(*failure)
		return false
	}
	beforeSend(p)
	ctx, cancel := context.WithTimeout(s.work, s.config.Deadline)
	stop := context.AfterFunc(ctx, func() {
		// The publisher has heard it too, and knows what it means for its broker. One that says nothing is answered for
		// soon after.
		time.AfterFunc(s.config.margin(), func() { done(classify(ctx.Err())) })
	})
	pipeliner.Enqueue(ctx, message, func(err error) {
		stop()
		cancel()
		if err == nil {
			afterAck(p)
		}
		done(s.answered(p, err))
	})
	return true
}

// message checks an event and makes the message of it; failure is why not.
func (s *sender) message(p *core.Publish) (_ *publish.Message, failure *core.Outcome) {
	event := p.Event
	if s.clock.now()-p.DecidedAt > s.config.margin() {
		// The process stood still since this was decided; the lease must be looked at again.
		return nil, &core.Outcome{Class: core.NotSent, Detail: "decided too long ago"}
	}
	crash.Point("validate.before")
	if size := len(event.Payload); size > outbox.MaxContractBytes {
		// No contract allows it, and no emit stores it. It is not looked at: that would take long.
		return nil, &core.Outcome{
			Class: core.Terminal, Reason: publish.ReasonTooLarge, Contract: true,
			Detail: fmt.Sprintf("the payload has %d bytes, the limit is %d", size, outbox.MaxContractBytes),
		}
	}
	if !s.unchecked {
		stored := outbox.Stored{
			ID: event.ID, EventType: event.Type, AggregateType: event.Aggregate.Type, AggregateID: event.Aggregate.ID,
			Namespace: event.Aggregate.Namespace, TenantID: event.Tenant, DedupeKey: event.DedupeKey,
			Payload: event.Payload,
		}
		err := s.check(stored)
		if broken := (*outbox.ContractError)(nil); errors.As(err, &broken) {
			return nil, &core.Outcome{
				Class: core.Terminal, Reason: string(broken.Reason), Detail: clean.Error(err), Contract: true,
			}
		}
		if problem := stored.Problem(); problem != "" { // whoever wrote it; it says nothing about the type's contract
			broken := &outbox.ContractError{Reason: outbox.InvalidPayload, Detail: problem}
			return nil, &core.Outcome{
				Class: core.Terminal, Reason: string(broken.Reason), Detail: clean.Error(broken), Contract: true, OfRow: true,
			}
		}
	}
	crash.Point("validate.after")
	if year := event.CreatedAt.UTC().Year(); year < 1 || year > 9999 {
		return nil, &core.Outcome{
			Class: core.Terminal, Reason: string(outbox.InvalidPayload),
			Detail: "created_at: the year is not between 1 and 9999", Contract: true,
		}
	}
	message := &publish.Message{
		ID: event.ID, Topic: p.Topic, Key: event.Aggregate.Key(), Body: event.Payload,
		Seq: event.Seq, Namespace: event.Aggregate.Namespace, EventType: event.Type, AggregateType: event.Aggregate.Type,
		AggregateID: event.Aggregate.ID, CreatedAt: event.CreatedAt, Attempt: p.Attempt,
		Redelivered: p.Redelivered, Request: p.Request,
		Attributes: make(map[string]string, 9),
	}
	if event.Headers != nil && !core.ReadHeaders(event.Headers, &message.Attributes) {
		return nil, &core.Outcome{
			Class: core.Terminal, Reason: string(outbox.InvalidPayload), Detail: "headers: not an object of texts",
			Contract: true,
		}
	}
	// One string for the three that must be written out.
	text := make([]byte, 0, 96)
	text = append(text, event.ID.String()...)
	idEnd := len(text)
	text = event.CreatedAt.UTC().AppendFormat(text, "2006-01-02T15:04:05.000000Z")
	timeEnd := len(text)
	all := string(strconv.AppendInt(text, event.Seq, 10))
	message.Attributes["event_id"] = all[:idEnd]
	message.Attributes["event_type"] = event.Type
	message.Attributes["aggregate_type"] = event.Aggregate.Type
	message.Attributes["aggregate_id"] = event.Aggregate.ID
	message.Attributes["created_at"] = all[idEnd:timeEnd]
	message.Attributes["outbox_seq"] = all[timeEnd:]
	delete(message.Attributes, "redelivered") // headers do not stand for the row
	if p.Request != 0 {
		message.Attributes["redelivered"] = strconv.FormatInt(p.Request, 10)
	}
	delete(message.Attributes, "namespace")
	delete(message.Attributes, "tenant_id")
	delete(message.Attributes, "dedupe_key")
	// as its key has it
	if namespace := event.Aggregate.Namespace; namespace != outbox.DefaultNamespace && namespace != "" {
		message.Attributes["namespace"] = namespace
	}
	if event.Tenant != "" {
		message.Attributes["tenant_id"] = event.Tenant
	}
	if event.DedupeKey != "" {
		message.Attributes["dedupe_key"] = event.DedupeKey
	}
	if s.config.formatOf(p.Topic) == publish.CloudEvents {
		if err := s.config.addCloudEvent(message); err != nil {
			return nil, &core.Outcome{
				Class: core.Terminal, Reason: string(outbox.InvalidPayload), Detail: clean.Error(err), Contract: true,
			}
		}
	}
	return message, nil
}

// classify makes of a publisher's error what the core understands.
func classify(err error) (outcome core.Outcome) {
	class := publish.ClassOf(err)
	defer func() {
		// The error is looked at once more below, and may panic only then. A pipeliner's answer comes from a goroutine of
		// its own, where nobody else would catch that.
		if recover() != nil {
			outcome = core.Outcome{Class: core.Unknown, Detail: "an error that cannot be looked at: it panics"}
		}
	}()
	switch class {
	case publish.Published:
		return core.Outcome{Class: core.Acknowledged}
	case publish.NotSent:
		return core.Outcome{Class: core.NotSent, Detail: clean.Error(err)}
	case publish.Rejected:
		return core.Outcome{Class: core.Rejected, Detail: clean.Error(err)}
	case publish.Terminal:
		reason := publish.ReasonRejected
		if terminal := (*publish.TerminalError)(nil); errors.As(err, &terminal) && terminal.Reason == publish.ReasonTooLarge {
			reason = publish.ReasonTooLarge
		}
		return core.Outcome{Class: core.Terminal, Reason: reason, Detail: clean.Error(err)}
	case publish.TopicFault:
		outcome := core.Outcome{Class: core.RouteFault, Detail: clean.Error(err)}
		if topic := (*publish.TopicError)(nil); errors.As(err, &topic) {
			outcome.RetryAfter = min(max(topic.RetryAfter, 0), longestRetryAfter)
		}
		return outcome
	case publish.Unknown:
	}
	return core.Outcome{Class: core.Unknown, Detail: clean.Error(err)}
}

// longestRetryAfter bounds the delay that a broker may set.
const longestRetryAfter = 10 * time.Minute
