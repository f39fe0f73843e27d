package redisinbox

import (
	"context"
	"crypto/rand"
	"time"

	"github.com/posthaste-dev/posthaste/internal/crash"
)

// A hold is one delivery's claim on an event. Its token is in no other mark.
type hold struct {
	guard *Guard
	key   string
	token string
	// until is when Redis may let go of the event. It is counted from before Redis was asked, so that it is over here
	// first.
	until time.Time
}

func (g *Guard) newHold(key string) *hold {
	return &hold{guard: g, key: key, token: rand.Text()}
}

// take holds the event or goes on holding it, if nobody else does and it is not handled; otherwise it returns the mark
// that is there. It also takes an event whose mark is gone: Redis may have been restarted without a memory, and nobody
// else was faster.
func (h *hold) take(ctx context.Context) (found string, left time.Duration, err error) {
	asked := time.Now()
	own := heldMark + h.token
	found, left, err = h.guard.put(ctx, h.key, own, own, h.guard.config.Hold)
	if err == nil && found == "" {
		h.until = asked.Add(h.guard.config.Hold)
	}
	return found, left, err
}

// extend goes on holding the event until it is stopped, and loses the context when the hold is lost: when another has
// the event, or when Redis has not answered for so long that another may have it. stop waits until no extension is on
// its way.
func (h *hold) extend(handling context.Context, lose context.CancelCauseFunc) (stop func()) {
	// A handler may take its time after its context has ended, and holds the event until it returns.
	ctx, cancel := context.WithCancel(context.WithoutCancel(handling))
	stopped := make(chan struct{})
	lapse := time.AfterFunc(time.Until(h.until), func() { lose(&LostError{}) })
	beat := time.NewTicker(h.guard.config.Hold / 3)
	go func() {
		defer close(stopped)
		for {
			select {
			case <-ctx.Done():
				return
			case <-beat.C:
			}
			found, _, err := h.take(ctx)
			switch {
			case err != nil: // again at the next beat, and without end: the handler may not heed the lapse
			case found != "":
				lose(&LostError{})
				return
			default:
				lapse.Reset(time.Until(h.until))
			}
		}
	}()
	return func() {
		cancel()
		<-stopped
		beat.Stop()
		lapse.Stop()
	}
}

// finish marks the event as handled, also where the hold lapsed and nobody took the event: that it is handled is true.
// While Redis does not answer, finish tries again for as long as the hold lasts and ctx does not end.
func (h *hold) finish(ctx context.Context) error {
	pause := time.NewTimer(0)
	defer pause.Stop()
	crash.Point("mark.before")
	for {
		found, _, err := h.guard.put(context.WithoutCancel(ctx), h.key, heldMark+h.token, doneMark+h.token,
			h.guard.config.Keep)
		switch {
		case err == nil && found == "":
			crash.Point("mark.after")
			return nil
		case err == nil:
			return &LostError{Handled: true}
		case ctx.Err() != nil || time.Now().After(h.until):
			return &UnavailableError{Err: err, Handled: true}
		}
		pause.Reset(h.guard.config.Hold / 30)
		select {
		case <-pause.C:
		case <-ctx.Done(): // one more try
		}
	}
}

// release frees the event, if this delivery holds it.
func (h *hold) release(ctx context.Context) error {
	crash.Point("free.before")
	_, err := h.guard.remove(context.WithoutCancel(ctx), h.key, heldMark+h.token)
	crash.Point("free.after")
	return err
}
