package relay

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

// errHostile is an error as a broker should never send it, and may; errEndless is one that is far too long as well.
var (
	errHostile = errors.New("no\x00pe \x1b[31mred\x1b[0m \xff\xfe password=hunter2 postgres://u:s3cr3t@h/d \u202e")
	errEndless = fmt.Errorf("%w %s", errHostile, strings.Repeat("and so on ", 2000))
)

func wantReadable(t testing.TB, text string) {
	t.Helper()
	switch {
	case text == "" || utf8.RuneCountInString(text) > 2048 || !utf8.ValidString(text):
		t.Errorf("an error of %d characters: %.80q", utf8.RuneCountInString(text), text)
	case strings.ContainsFunc(text, unicode.IsControl) || strings.Contains(text, "[31m") ||
		strings.Contains(text, "\u202e"):
		t.Errorf("it holds control characters: %.80q", text)
	case strings.Contains(text, "hunter2") || strings.Contains(text, "s3cr3t"):
		t.Errorf("it holds a secret: %.80q", text)
	}
}

// RL-6, S-4: the event's own fault is charged to it, in words that can be stored and shown, and is due later.
func TestARejectionIsChargedWrittenDownAndDueLater(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = func(context.Context, *publish.Message, int) error {
			return &publish.RejectedError{Err: errEndless}
		}
		id := p.emit(t, placed.New("1", note{}))[0]
		p.start(t, "a", with(func(s *relay.Settings) { s.BaseDelay, s.MaxDelay = time.Hour, 10*time.Hour }))
		r := p.awaitState(t, id, retrying)
		if r.attempts != 1 || r.publishedAt != nil {
			t.Errorf("charged as %+v", r)
		}
		if r.dueIn < 29*time.Minute || r.dueIn > time.Hour {
			t.Errorf("due in %s, want between half an hour and an hour", r.dueIn)
		}
		wantReadable(t, r.lastError)
		if n := p.broker.count(); n != 1 {
			t.Errorf("%d tries", n)
		}
	})
}

// RL-7: the delays double from attempt to attempt.
func TestTheDelaysGrow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		p.broker.answer = func(_ context.Context, _ *publish.Message, try int) error {
			if try < 5 {
				return &publish.RejectedError{Err: errors.New("not yet")}
			}
			return nil
		}
		id := p.emit(t, placed.New("1", note{}))[0]
		p.start(t, "a", with(func(s *relay.Settings) {
			s.BaseDelay, s.MaxDelay = 100*time.Millisecond, 400*time.Millisecond
		}))
		p.awaitPublished(t, 1)
		tries := p.broker.of(id)
		for i, most := range []int{100, 200, 400, 400} {
			if gap := tries[i+1].begun.Sub(tries[i].ended); gap < time.Duration(most)*time.Millisecond/2 {
				t.Errorf("after attempt %d only %s passed, want at least half of %d ms", i+1, gap, most)
			}
		}
		if r := p.row(t, id); r.attempts != 4 {
			t.Errorf("%d attempts charged, want 4", r.attempts)
		}
	})
}

// RL-6, P8, L5, S9: an outage of the broker is written on the topic; no event is charged, and all are published after.
func TestAnOutageOfTheBrokerIsTheTopicsOwn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events = 120
		var up atomic.Bool
		p.broker.answer = func(context.Context, *publish.Message, int) error {
			if up.Load() {
				return nil
			}
			return &publish.TopicError{Err: errHostile}
		}
		for i := range events {
			p.emit(t, placed.New(fmt.Sprint(i%40), note{N: i / 40}))
		}
		p.start(t, "a")
		var reason string
		eventually.True(t, "a paused route", func() bool {
			return p.Pool.QueryRow(t.Context(),
				p.SQL("SELECT error FROM {schema}.outbox_topics WHERE topic = 'orders' AND paused")).Scan(&reason) == nil
		})
		wantReadable(t, reason)
		eventually.True(t, "three probes", func() bool {
			return len(p.logs.lines(t, "outcome", string(publish.TopicFault))) > 3
		})
		if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events e WHERE attempt_count > 0 OR last_error IS NOT NULL "+
			"OR "+states.Of+" NOT IN (0, 3)"); n > 0 {
			t.Errorf("%d events bear the broker's fault", n)
		}
		if n := p.broker.count(); n > 100 {
			t.Errorf("%d tries while the broker is down: no breaker", n)
		}
		if len(p.logs.lines(t, "msg", "topic paused")) != 1 {
			t.Error("the pause must be logged, once")
		}
		up.Store(true)
		p.awaitPublished(t, events)
		p.wantDelivered(t)
		eventually.True(t, "the route as healthy", func() bool {
			return p.Count(t,
				"SELECT count(*) FROM {schema}.outbox_topics WHERE topic = 'orders' AND NOT paused AND error = ''") == 1
		})
	})
}

// P10, L3: a topic that fails stops no other.
func TestATopicThatFailsStopsNoOther(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(ctx context.Context, healed <-chan struct{}) error{
		"says so": func(context.Context, <-chan struct{}) error {
			return &publish.TopicError{Err: errors.New("no such topic")}
		},
		"hangs": func(ctx context.Context, healed <-chan struct{}) error {
			select {
			case <-ctx.Done():
			case <-healed:
			}
			return context.DeadlineExceeded
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, p *env) {
				const each = 100
				healed := make(chan struct{})
				p.broker.answer = func(ctx context.Context, message *publish.Message, _ int) error {
					select {
					case <-healed:
						return nil
					default:
					}
					if message.Topic == "bills" {
						return fault(ctx, healed)
					}
					return nil
				}
				for i := range each { // the same aggregates on both topics
					p.emit(t, billed.New(fmt.Sprint(i%20), note{N: i / 20}), placed.New(fmt.Sprint(i%20), note{N: i / 20}))
				}
				const concurrency = 16
				p.start(t, "a", with(func(s *relay.Settings) { s.Concurrency, s.Deadline = concurrency, 2*time.Second }))
				eventually.True(t, "the other topic's events", func() bool { return p.inState(t, published) == each })
				ended := func(d *delivery) bool { return d.Topic == "bills" && !d.ended.IsZero() }
				gaveUp := p.broker.deliveries(ended)
				if name == "hangs" && len(gaveUp) > 3*concurrency { // all of them once, before it shows that the topic hangs
					t.Errorf("the other topic waited until %d publishes had given up", len(gaveUp))
				}
				// By then the topic is paused. Else what is in flight when it heals would fail while others pass, and be charged.
				eventually.True(t, "publishes that gave up", func() bool { return len(p.broker.deliveries(ended)) >= 5 })
				close(healed)
				p.awaitPublished(t, 2*each)
				p.wantDelivered(t)
			})
		})
	}
}

// P13: a broker that asks to be left alone is, and no event pays for it.
func TestARetryAfterIsKept(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const pause = 1500 * time.Millisecond
		p.broker.answer = func(_ context.Context, message *publish.Message, try int) error {
			if message.AggregateID == "0" && try == 1 {
				return &publish.TopicError{Err: errors.New("quota exceeded"), RetryAfter: pause}
			}
			return nil
		}
		p.emit(t, placed.New("0", note{}))
		p.start(t, "a")
		eventually.True(t, "the refusal", func() bool { return len(p.logs.lines(t, "msg", "topic paused")) == 1 })
		for i := range 10 {
			p.emit(t, placed.New(fmt.Sprint(i), note{N: 1}))
		}
		p.awaitPublished(t, 11)
		all := p.broker.deliveries(func(*delivery) bool { return true })
		for _, d := range all[1:] {
			if waited := d.begun.Sub(all[0].ended); waited < pause {
				t.Errorf("sent again after %s, the broker asked for %s", waited, pause)
			}
		}
		p.wantDelivered(t)
	})
}

// P2: nobody knows whether the broker has it. It is sent again, and is not charged.
func TestAnUnknownOutcomeIsSentAgainAndNotCharged(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events = 4
		var sends atomic.Int32
		p.broker.answer = func(context.Context, *publish.Message, int) error {
			if sends.Add(1) <= events {
				return context.DeadlineExceeded // and the broker has it all the same
			}
			// The topic carries nothing before the last of them has failed, so the fault is not theirs.
			if len(p.logs.lines(t, "outcome", "unknown")) < events {
				return &publish.TopicError{Err: errors.New("not yet")}
			}
			return nil
		}
		for i := range events {
			p.emit(t, placed.New(fmt.Sprint(i), note{}))
		}
		p.start(t, "a")
		p.awaitPublished(t, events)
		p.wantInOrder(t)
		if twice := p.broker.count(); twice < 2*events {
			t.Errorf("%d deliveries, want two of each event", twice)
		}
	})
}

// RL-10, P5, C17: what one event does, even a panic, happens to no other.
func TestABadEventStopsNoOther(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events = 90
		p.broker.answer = func(_ context.Context, message *publish.Message, _ int) error {
			switch {
			case strings.HasPrefix(message.AggregateID, "reject"):
				return &publish.RejectedError{Err: errors.New("bad")}
			case strings.HasPrefix(message.AggregateID, "panic"):
				panic("the publisher trips over it")
			}
			return nil
		}
		bad := map[outbox.ID]bool{}
		for i := range events {
			kind := [...]string{"good", "reject", "panic"}[i%3]
			id := p.emit(t, placed.New(fmt.Sprint(kind, i), note{}))[0]
			bad[id] = kind != "good"
		}
		p.start(t, "a", with(func(s *relay.Settings) { s.MaxAttempts = 3 }))
		late := 0
		eventually.True(t, "all at their end", func() bool {
			late++ // a panic counts against an event only while others pass
			p.emit(t, placed.New(fmt.Sprint("good and late", late), note{}))
			return p.inState(t, deadBlocking) == events*2/3
		})
		eventually.True(t, "the good ones", func() bool { return p.inState(t, published) == events/3+late })
		for id, isBad := range bad {
			r := p.row(t, id)
			if want := map[bool]int{true: deadBlocking, false: published}[isBad]; r.state != want || isBad && r.attempts != 3 ||
				!isBad && r.attempts != 0 {
				t.Errorf("bad=%v: %+v", isBad, r)
			}
		}
	})
}
