package core_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// link is a store behind a slow link: reads whose answer is larger than it carries in the time of a statement time out.
type link struct {
	core.Store
	carries  int
	timedOut bool // the last read did
	timeouts int
	rows     int // the most that a read has brought
}

func (l *link) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	answer, err := l.Store.Read(ctx, read)
	size := 0
	for i := range answer.Events {
		size += answer.Events[i].Bytes()
	}
	if l.timedOut = size > l.carries; l.timedOut {
		l.timeouts++
		return core.ReadAnswer{}, errors.New("statement timeout")
	}
	l.rows = max(l.rows, len(answer.Events))
	return answer, err
}

const statementTimeout = 10 * time.Second

// behindALink starts a relay with eight lanes, and the link between it and its store. Reads and fences take a moment,
// so that some are under way when another read times out.
func behindALink(t *testing.T, carries int) (*place, *rig, *link) {
	t.Helper()
	p := newPlace(8)
	l := &link{Store: p.store, carries: carries}
	r := p.relay(t, registry{"a": {Topic: "topic"}}, nil)
	r.via = l
	r.delay = func(op core.Op) time.Duration {
		switch {
		case op == core.OpRead && l.timedOut:
			l.timedOut = false
			return statementTimeout
		case op == core.OpRead:
			return 20 * time.Millisecond
		case op == core.OpFence:
			return 10 * time.Millisecond
		}
		return 0
	}
	r.pass(time.Second)
	return p, r, l
}

func (p *place) emitLarge(t *testing.T, lane, aggregate string, size int) outbox.ID {
	t.Helper()
	tx := p.store.Begin()
	event := core.Event{
		ID: p.id(), Type: "a", Aggregate: core.Aggregate{Namespace: lane, Type: "t", ID: aggregate},
		Payload: make([]byte, size),
	}
	if _, err := tx.Emit(event); err != nil {
		t.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		t.Fatal(err)
	}
	return event.ID
}

// others emits an event into each of the lanes 1 to 7 every 100 ms, and returns the longest that one of them has
// waited.
func (r *rig) others(t *testing.T, d time.Duration) (longest time.Duration) {
	t.Helper()
	emitted := map[outbox.ID]time.Duration{}
	for i := range int(d / (100 * time.Millisecond)) {
		for lane := range 7 {
			emitted[r.emit(t, fmt.Sprint(1+lane), fmt.Sprint(i%50), "a")] = r.now
		}
		r.pass(100 * time.Millisecond)
		for id, at := range emitted {
			longest = max(longest, r.now-at)
			if r.state(t, id) == core.Published {
				delete(emitted, id)
			}
		}
	}
	return longest
}

// Large events in one lane, behind a link that carries four of them in the time that a statement has: all are
// published, few reads time out, and the other lanes go on.
func TestALaneOfLargeEventsBehindASlowLink(t *testing.T) {
	t.Parallel()
	p, r, l := behindALink(t, 40_000)
	var large []outbox.ID
	for i := range 400 {
		large = append(large, p.emitLarge(t, "0", fmt.Sprint("large", i), 9000))
	}
	first := r.others(t, time.Minute) // in which the lane is found
	then := r.others(t, 4*time.Minute)
	published := 0
	for _, id := range large {
		if p.state(t, id) == core.Published {
			published++
		}
	}
	if published != len(large) || l.timeouts > 10 {
		t.Errorf("%d of %d large events are published after five minutes and %d reads that timed out", published, len(large),
			l.timeouts)
	}
	if first > 4*statementTimeout || then > time.Second {
		t.Errorf("an event of another lane waited for %s in the first minute, for %s later; %d reads timed out", first, then,
			l.timeouts)
	}
}

// An event that the link never carries in time stops its own lane only.
func TestAnEventThatNoReadBrings(t *testing.T) {
	t.Parallel()
	p, r, l := behindALink(t, 40_000)
	p.emitLarge(t, "0", "large", 50_000)
	first, then := r.others(t, time.Minute), r.others(t, 4*time.Minute)
	if l.timeouts < 5 {
		t.Errorf("%d reads timed out: nobody tries the lane again", l.timeouts)
	}
	if first > 4*statementTimeout || then > time.Second {
		t.Errorf("an event of another lane waited for %s in the first minute, for %s later; %d reads timed out", first, then,
			l.timeouts)
	}
}

// Reads of all lanes fail twice, beside a lane that no read brings: the other lanes are not held up by that one.
func TestALaneThatNoReadBringsAndOtherReadsThatFail(t *testing.T) {
	t.Parallel()
	p, r, l := behindALink(t, 40_000)
	p.emitLarge(t, "0", "large", 50_000)
	r.others(t, time.Minute)
	l.carries = -1
	r.pass(statementTimeout / 2)
	r.others(t, 2*statementTimeout)
	l.carries = 40_000
	r.others(t, 2*time.Minute) // in which what waited goes out
	if then := r.others(t, 4*time.Minute); then > time.Second {
		t.Errorf("an event of another lane waited for %s; %d reads timed out", then, l.timeouts)
	}
}

// After the database was away, and every read failed, reads are soon as large as before.
func TestReadsGrowAgain(t *testing.T) {
	t.Parallel()
	p, r, l := behindALink(t, 1<<30)
	p.emit(t, "0", "one", "a")
	l.carries = -1
	r.pass(2 * time.Minute)
	if l.timeouts < 5 {
		t.Fatalf("%d reads failed", l.timeouts)
	}
	l.carries, l.rows = 1<<30, 0
	for i := range 4000 {
		p.emit(t, "3", fmt.Sprint(i), "a")
	}
	r.pass(30 * time.Second)
	if left := p.store.Open(); left > 0 || l.rows < 64 {
		t.Errorf("%d events are left half a minute after the database is back, and no read had more than %d rows",
			left, l.rows)
	}
}
