package access

import (
	"net/http"
	"net/netip"
	"sync"
	"time"
)

const (
	// mostAttempts is how many attempts an address has in a window.
	mostAttempts = 10
	// window is how long attempts count, and how long an address waits when it has used all of them.
	window = time.Minute
	// mostAddresses bounds the memory. Whoever sends from more addresses than that has as many attempts anyway.
	mostAddresses = 4096
)

// attempts counts by address what went wrong.
type attempts struct {
	now func() time.Time

	mu   sync.Mutex
	used *fading[netip.Addr, int]
}

func newAttempts(now func() time.Time) *attempts {
	return &attempts{now: now, used: newFading[netip.Addr, int](mostAddresses)}
}

// begin uses up an attempt, or says how long to wait for one. It counts before the outcome is known, so that a
// thousand guesses at once are no way around the limit; what turns out to be right is given back.
func (a *attempts) begin(from netip.Addr) (wait time.Duration) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	used, until, known := a.used.get(from, now)
	if used >= mostAttempts {
		return until.Sub(now)
	}
	used++
	if !known || used == mostAttempts { // the last one locks for a whole window
		until = now.Add(window)
	}
	a.used.put(from, used, until, now)
	return 0
}

// giveBack makes an attempt unused, because it was right.
func (a *attempts) giveBack(from netip.Addr) {
	a.mu.Lock()
	defer a.mu.Unlock()
	now := a.now()
	if used, until, known := a.used.get(from, now); used > 1 {
		a.used.put(from, used-1, until, now)
	} else if known {
		a.used.remove(from)
	}
}

// source is whose attempts a request uses. A customer of IPv6 has a whole /64, so that counts as one address.
func source(r *http.Request) netip.Addr {
	from := remote(r)
	if !from.Is6() {
		return from
	}
	network, err := from.Prefix(64)
	if err != nil {
		return from
	}
	return network.Addr()
}

// tooMany is the denial of who has no attempts left.
func tooMany(wait time.Duration, name string) *Denial {
	return &Denial{
		Status: http.StatusTooManyRequests, Message: "Too many failed attempts from your address. Wait, then try again.",
		Reason: "too many failed attempts", Name: name, RetryAfter: wait,
	}
}
