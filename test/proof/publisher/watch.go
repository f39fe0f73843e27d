package publisher

import (
	"context"
	"net/http"
	"slices"
	"sync"
	"time"
)

// sample is what the probes answered at a time.
type sample struct {
	at    time.Time
	ready bool
}

// Watch asks the probes of a program again and again.
type Watch struct {
	mu         sync.Mutex
	samples    []sample
	asked      int
	liveFailed []string // what /livez answered when it failed
	stop       context.CancelFunc
	done       chan struct{}
}

const watchEvery = 200 * time.Millisecond

// StartWatch begins to ask, until Stop.
func StartWatch(ctx context.Context, p *Program) *Watch {
	ctx, cancel := context.WithCancel(ctx)
	w := &Watch{stop: cancel, done: make(chan struct{})}
	go func() {
		defer close(w.done)
		tick := time.NewTicker(watchEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
				w.fetch(ctx, p)
			}
		}
	}()
	return w
}

func (w *Watch) fetch(ctx context.Context, p *Program) {
	live, body := p.Fetch(ctx, http.MethodGet, "/livez")
	asked := time.Now()
	ready, _ := p.Fetch(ctx, http.MethodGet, "/readyz")
	if ctx.Err() != nil {
		return // the watch was stopped in the middle of it
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.asked++
	if live != http.StatusOK {
		w.liveFailed = append(w.liveFailed, body)
	}
	w.samples = append(w.samples, sample{asked, ready == http.StatusOK})
}

// Stop ends the watch.
func (w *Watch) Stop() {
	w.stop()
	<-w.done
}

// Live is how often /livez was asked, and what it answered each time it was not well.
func (w *Watch) Live() (asked int, failed []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.asked, w.liveFailed
}

// NotReadySince is when /readyz was asked first of those times, in a row and up to the last one, at which it said no.
// It tells whether there were any after this time.
func (w *Watch) NotReadySince(after time.Time) (since time.Time, not bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range slices.Backward(w.samples) {
		if s.ready || s.at.Before(after) {
			break
		}
		since, not = s.at, true
	}
	return since, not
}

// Ready counts what /readyz answered between two times.
func (w *Watch) Ready(from, to time.Time) (ready, not int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, s := range w.samples {
		switch {
		case s.at.Before(from) || s.at.After(to):
		case s.ready:
			ready++
		default:
			not++
		}
	}
	return ready, not
}
