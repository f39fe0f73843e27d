package kafka

import (
	"context"
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/publish"
)

// ErrBehindFailure answers a message that was handed over behind one of the same key that failed. It says nothing
// about this message: mostly it was never sent, and where a deadline passed, nobody knows. It is a
// [publish.ErrNotSent] all the same: the relay sends it again, behind the one that failed, and charges nobody.
var ErrBehindFailure = fmt.Errorf("kafka: an earlier message of the same key failed: %w", publish.ErrNotSent)

// stragglers is how long a call can be on its way that the relay decided on before it heard of a failure. It is far
// above any publish deadline, so the context of such a call has ended by then.
const stragglers = time.Minute

// handOver is a message that the relay gave us and waits to hear of.
type handOver struct {
	ctx     context.Context //nolint:containedctx // a call that outlives the function that made it
	message *publish.Message
	done    func(error)
	size    int // of its record, but for its place in the batch
	// knows tells that the relay knows of every failure of this key: it publishes one at a time.
	knows bool

	// Guarded by the topic's mutex.
	answered bool
	unwatch  func() bool
	at       *partition // nil: nobody knows yet
}

// answer is what the relay is to be told.
type answer struct {
	to   *handOver
	err  error
	line *line // nil: it did not fail
}

// line is what is known of a key of which a message has failed, until the relay hands over again from there. A key
// without one is healthy. The topic's mutex guards it.
type line struct {
	failedAt time.Time
	// told is the highest sequence among those that failed, or that of the one refused last, and untold how many of
	// them are still to be called back.
	told   int64
	untold int
}

// admits tells whether a message may be sent.
//
// After a failure the relay may have a call on its way that it decided on before it heard. Letting that one in would
// send a later event ahead of the failed one. It is told apart by its sequence: it was not among those that failed. It
// is refused once, which makes it one of them.
func (l *line) admits(h *handOver, now time.Time) bool {
	switch {
	case l == nil || h.knows:
		return true
	case l.untold > 0:
		return false
	default:
		return h.message.Seq <= l.told || now.Sub(l.failedAt) > stragglers
	}
}

// lineOf finds the line of a key that has failed, or makes it.
func (t *topic) lineOf(key string, now time.Time) *line {
	l := t.lines[key]
	if l == nil {
		t.sweep(now)
		l = &line{}
		t.lines[key] = l
	}
	l.failedAt = now
	return l
}

// answerFailed takes note of a failure, of which the relay is to be told.
func (t *topic) answerFailed(h *handOver, err error) answer {
	l := t.lineOf(h.message.Key, time.Now())
	h.answered = true
	l.told = max(l.told, h.message.Seq)
	l.untold++
	return answer{to: h, err: err, line: l}
}

// reject makes a message the last of the failed ones: what is behind it has to be refused as well, also if it had
// failed before.
func (t *topic) reject(h *handOver) answer {
	rejected := t.answerFailed(h, ErrBehindFailure)
	rejected.line.told = h.message.Seq
	return rejected
}

// sweep forgets keys that failed long ago and were never handed over again: their lane moved to another relay, or
// their event is dead.
func (t *topic) sweep(now time.Time) {
	if now.Sub(t.swept) < stragglers {
		return
	}
	t.swept = now
	for key, l := range t.lines {
		if l.untold == 0 && now.Sub(l.failedAt) > stragglers {
			delete(t.lines, key)
		}
	}
}

// callBack calls back, in order.
func (t *topic) callBack(answers []answer) {
	for _, a := range answers {
		if a.to.unwatch != nil {
			a.to.unwatch()
		}
		if a.line != nil {
			t.mu.Lock()
			a.line.untold--
			t.mu.Unlock()
		}
		a.to.done(a.err)
		t.publisher.unanswered.Done()
	}
}

// gaveUp is the error of a message whose context ended while it waited, for its turn or for an acknowledgement.
//
// Nobody knows whether a broker has it. No message is the reason for that: Kafka's own clients would go on trying, and
// while the leader of one partition is away those of the others acknowledge, so to charge it would end in dead events.
func gaveUp(ctx context.Context, last error) error {
	err := fmt.Errorf("kafka: no acknowledgement in time: %w%s", context.Cause(ctx), lately(last))
	return &publish.TopicError{Err: err}
}

// notSentInTime is the error of a message whose context had ended before it came.
func notSentInTime(ctx context.Context) error {
	return fmt.Errorf("kafka: %w: %w", context.Cause(ctx), publish.ErrNotSent)
}

// lately says what was last wrong, for whoever reads that a deadline has passed.
func lately(err error) string {
	if err == nil {
		return ""
	}
	return " (" + err.Error() + ")"
}
