package redisinbox

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/outbox"
)

// CheckAndMarkProcessed tells whether an event was handled before and, if not, marks it as handled, in one SET NX with
// the expiry ttl; 0 is Config.Keep. Call it before the effect. If the effect fails, [Guard.Delete] makes the event
// processable again.
//
// It loses the event if the process dies between the mark and the effect, and if Redis takes the mark while its answer
// is lost for good: every copy that follows is taken for handled, until the mark expires. [Guard.Do] does not.
//
// An event that Do holds is a [HeldError]. Config.FailOpen is not looked at: an error is an [UnavailableError].
//
// Deprecated: it loses events by design, and is here for those who must share marks with such a helper of their own.
// Use [Guard.Do], or [Guard.Once] in a consumer's Config.Middleware.
func (g *Guard) CheckAndMarkProcessed(ctx context.Context, consumer string, eventID outbox.ID,
	ttl time.Duration,
) (already bool, err error) {
	key, err := g.key(consumer, eventID)
	if err != nil {
		return false, err
	}
	if ttl == 0 {
		ttl = g.config.Keep
	}
	if ttl < time.Millisecond {
		return false, fmt.Errorf("%w: a ttl of %s: the least is 1ms, and 0 is Config.Keep", ErrRefused, ttl)
	}
	mark := g.calledMarks() + rand.Text()
	crash.Point("check.before")
	found, err := g.setIfNone(ctx, key, mark, ttl)
	switch {
	case err != nil:
		// Redis may have taken the mark before its answer was lost. Left there, it would hide the event.
		_, removing := g.remove(context.WithoutCancel(ctx), key, mark)
		return false, &UnavailableError{Err: errors.Join(err, removing)}
	case found == mark:
		crash.Point("check.after")
		return false, nil
	case strings.HasPrefix(found, heldMark):
		return false, &HeldError{RetryAfter: g.config.Hold}
	default:
		return true, nil
	}
}

// setIfNone sets a mark if there is none, and returns the one that is there.
func (g *Guard) setIfNone(ctx context.Context, key, mark string, ttl time.Duration) (found string, err error) {
	ctx, cancel := g.within(ctx)
	defer cancel()
	set, err := g.client.SetNX(ctx, key, mark, ttl).Result()
	if err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	if set {
		return mark, nil
	}
	// A client whose answer was lost sends the command again, and then meets its own mark. It is told by its token.
	found, err = g.client.Get(ctx, key).Result()
	if errors.Is(err, redis.Nil) {
		// it expired, or a replica was asked that has not heard of it
		return "", errors.New("redis: a mark was there and is gone")
	}
	if err != nil {
		return "", fmt.Errorf("redis: %w", err)
	}
	return found, nil
}

// Delete takes back the mark that [Guard.CheckAndMarkProcessed] of this guard has set, after its effect failed. A mark
// of another guard stays where it is, and is an error: whoever has set it answers for the event. No mark is no error.
//
// Deprecated: it belongs to CheckAndMarkProcessed. [Guard.Do] takes its own marks back.
func (g *Guard) Delete(ctx context.Context, consumer string, eventID outbox.ID) error {
	key, err := g.key(consumer, eventID)
	if err != nil {
		return err
	}
	found, err := g.remove(ctx, key, g.calledMarks())
	if err != nil {
		return fmt.Errorf("redisinbox: the mark may still be there and would hide the event until it expires: delete it "+
			"again: %w", err)
	}
	if found != "" {
		return fmt.Errorf("redisinbox: the mark of consumer %s on event %s is not of this guard, so it stays",
			consumer, eventID)
	}
	return nil
}

// calledMarks is how the marks of this guard's one-call form begin.
func (g *Guard) calledMarks() string { return calledMark + g.name + "." }
