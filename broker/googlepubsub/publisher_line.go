package googlepubsub

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"cloud.google.com/go/pubsub/v2"
	"google.golang.org/grpc/status"

	"github.com/posthaste-dev/posthaste/publish"
)

// ErrBehindFailure answers a message that was handed over behind one of the same key that failed. It says
// nothing about this message: mostly it was never sent, and where a deadline passed, nobody knows. It is a
// [publish.ErrNotSent] all the same: the relay sends it again, behind the one that failed, and charges nobody.
var ErrBehindFailure = fmt.Errorf("googlepubsub: an earlier message of the same key failed: %w", publish.ErrNotSent)

// stragglers is how long a call can be on its way that the relay decided on before it heard of a failure.
// It is far above any publish deadline, so the context of such a call has ended by then.
const stragglers = time.Minute

// line is the messages of one key, from the first that is not answered to the last that waits. The topic's
// mutex guards it.
type line struct {
	name string // the message's key
	key  string // the library's ordering key

	sent    []*handOver // the library has them; those that are answered stay until it is through with them
	waiting []*handOver // handed over and not yet given to the library

	feeding  bool // somebody gives waiting to the library
	draining bool // a goroutine waits for sent

	// holding keeps waiting back until sent is empty.
	holding bool

	// failed tells that the relay is being told of a failure and has not handed over again since.
	failed   bool
	failedAt time.Time
	// told is the highest sequence among those that failed since the last recovery, or that of the one refused
	// last, and untold how many of them are still to be called back.
	told   int64
	untold int
}

// admits tells whether a message may join the line.
//
// After a failure the relay may have a call on its way that it decided on before it heard. Letting that one
// in would resume the key with a later event ahead of the failed one. It is told apart by its sequence: it
// was not among those that failed. It is refused once, which makes it one of them.
func (l *line) admits(h *handOver, now time.Time) bool {
	switch {
	case !l.failed || h.knows:
		return true
	case l.untold > 0:
		return false
	default:
		return h.message.Seq <= l.told || now.Sub(l.failedAt) > stragglers
	}
}

// goOn ends a failure: what fails from now on is another one, of which the relay has to hear anew.
func (l *line) goOn() { l.failed, l.told = false, math.MinInt64 }

// reject makes a message the last of the failed ones: what is behind it has to be refused as well, also if it had
// failed before.
func (l *line) reject(h *handOver) []answer {
	answers := []answer{l.answerFailed(h, ErrBehindFailure)}
	l.told = h.message.Seq
	return answers
}

// next moves the first that waits to the sent ones.
func (l *line) next() *handOver {
	h := l.waiting[0]
	l.waiting = l.waiting[1:]
	l.sent = append(l.sent, h)
	return h
}

func (l *line) succeed(h *handOver) []answer {
	h.answered = true
	return []answer{{to: h}}
}

// fail answers a message with its error, and all behind it with [ErrBehindFailure].
func (l *line) fail(h *handOver, cause error, now time.Time) []answer {
	l.failed, l.failedAt, l.holding = true, now, true
	var answers []answer
	behind := false
	kept := l.waiting[:0:0]
	for i, each := range slices.Concat(l.sent, l.waiting) {
		switch {
		case each == h:
			behind = true
			answers = append(answers, l.answerFailed(h, cause))
		case behind && !each.answered:
			answers = append(answers, l.answerFailed(each, ErrBehindFailure))
		case !behind && i >= len(l.sent):
			kept = append(kept, each)
		}
	}
	l.waiting = kept
	return answers
}

func (l *line) answerFailed(h *handOver, err error) answer {
	h.answered = true
	l.told = max(l.told, h.message.Seq)
	l.untold++
	return answer{to: h, err: err}
}

// idle tells that nothing of the line is in flight.
func (l *line) idle() bool { return len(l.sent)+len(l.waiting)+l.untold == 0 && !l.draining }

// gaveUp is the error of a message whose context ended when the library had it: nobody knows whether Pub/Sub has it.
func gaveUp(ctx context.Context) error {
	return &publish.TopicError{Err: fmt.Errorf("googlepubsub: no answer in time: %w", context.Cause(ctx))}
}

// notSentInTime is the error of a message whose context ended before the library had it.
func notSentInTime(ctx context.Context) error {
	return fmt.Errorf("googlepubsub: its turn did not come in time: %w: %w", context.Cause(ctx), publish.ErrNotSent)
}

// declined is why the library did not take a message: it waited for room until its context ended, or the library is
// stopped. Nil if it did, or may have.
func declined(ctx context.Context, result *pubsub.PublishResult) error {
	select {
	case <-result.Ready():
	default:
		return nil
	}
	_, err := result.Get(ctx)
	_, answered := status.FromError(err) // also without an error
	switch {
	case answered, errors.Is(err, pubsub.ErrOversizedMessage):
		return nil
	case ctx.Err() != nil && errors.Is(err, ctx.Err()):
		return notSentInTime(ctx)
	default:
		return fmt.Errorf("%w: %w", ErrClosed, err)
	}
}
