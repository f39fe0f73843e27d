package relay

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// short is a lease that a test waits for, and still so long that no machine stands still for most of it.
const short = 15 * time.Second

func shortLease(s *relay.Settings) { s.Lease = short }

// crashing is for a relay that is to crash: it waits for nobody.
func crashing(s *relay.Settings) { s.Drain = 50 * time.Millisecond }

// crash takes a relay off the database in the middle of everything and ends it. What it holds it keeps, as far
// as the database knows.
func (r *run) crash(t testing.TB, x *proxy.Proxy) {
	t.Helper()
	x.Block()
	if err := r.stop(t); err != nil {
		t.Errorf("relay %s: %v", r.name, err)
	}
}

// leaseEnds is when the last lease ends, by the server's clock.
func (p *env) leaseEnds(t testing.TB) time.Time {
	t.Helper()
	var at time.Time
	if err := p.Pool.QueryRow(t.Context(),
		p.SQL("SELECT max(lease_until) FROM {schema}.outbox_lane_status")).Scan(&at); err != nil {
		t.Fatal(err)
	}
	return at
}

// expire ends the lease of a relay that is dead, as if its time had passed.
func (p *env) expire(t testing.TB, name string) {
	t.Helper()
	p.Exec(t, leases.Expire, name)
}

// RL-2, C2, L2: what a crashed relay held moves when its lease ends, by itself, and is not blamed for the crash.
func TestACrashedRelaysEventsMoveWhenItsLeaseEnds(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events = 12
		p.broker.answer = func(ctx context.Context, _ *publish.Message, _ int) error {
			<-ctx.Done() // the first relay dies with all of them in flight
			return ctx.Err()
		}
		for i := range events {
			p.emit(t, placed.New(fmt.Sprint(i), note{}))
		}
		x := proxy.New(t, p.URL)
		a := p.start(t, "a", through(t, x), with(crashing), with(longLease))
		eventually.True(t, "all in flight", func() bool { return p.broker.inFlight() == events })
		a.crash(t, x)
		p.broker.answer = nil
		if p.inState(t, ready) != events {
			t.Fatal("the crash came too late")
		}
		b := p.start(t, "b")
		p.awaitLooks(t, 5, b)
		if n := p.broker.countOf("b"); n > 0 || p.leaseEnds(t).Before(time.Now()) {
			t.Errorf("the second relay has sent %d events before the lease's end at %s", n, p.leaseEnds(t))
		}
		p.expire(t, "a")
		looks := p.looksUntil(t, b, "the first event", func() bool { return p.broker.countOf("b") > 0 })
		if looks > 10 {
			t.Errorf("taken over %d looks after the lease's end", looks)
		}
		p.awaitPublished(t, events)
		if n := p.broker.countOf("b"); n != events {
			t.Errorf("the second relay delivered %d", n)
		}
		p.wantInOrder(t)
	})
}

// untouched is the pause of a type that nobody emits: whether a relay has heard of it shows that it has looked.
var untouched = operator.TypeScope("nobody_emits_it")

// awaitLooks waits until the relays have looked at the fleet so often.
func (p *env) awaitLooks(t *testing.T, n int, relays ...*run) {
	t.Helper()
	for look := range n {
		p.order(t, untouched, look%2 == 0)
		p.awaitHeard(t, untouched, look%2 == 0, relays...)
	}
}

// looksUntil waits for a condition, and returns how many looks of a relay were seen until then.
func (p *env) looksUntil(t *testing.T, r *run, what string, holds func() bool) (looks int) {
	t.Helper()
	paused := !r.knowsPaused(untouched)
	p.order(t, untouched, paused)
	eventually.True(t, what, func() bool {
		if r.knowsPaused(untouched) == paused {
			looks++
			paused = !paused
			p.order(t, untouched, paused)
		}
		return holds()
	})
	return looks
}

// RL-5: what is written down as published is what the broker has acknowledged, not before.
func TestPublishedAtOnlyAfterTheAcknowledgement(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		answer := make(chan struct{})
		id := p.emit(t, placed.New("1", note{}))[0]
		p.broker.answer = func(_ context.Context, message *publish.Message, _ int) error {
			if message.ID == id {
				<-answer
			}
			return nil
		}
		p.start(t, "a")
		eventually.True(t, "the event in flight", func() bool { return p.broker.inFlight() == 1 })
		p.emit(t, placed.New("1", note{N: 1})) // its follower is read meanwhile, and must not go
		// One statement settles at a time: what was decided about the first is written down when this one is.
		other := p.emit(t, placed.New("2", note{}))[0]
		eventually.True(t, "another event settled", func() bool { return p.row(t, other).state == published })
		if r := p.row(t, id); r.state != ready || r.publishedAt != nil {
			t.Errorf("in flight, and already %+v", r)
		}
		close(answer)
		p.awaitPublished(t, 3)
		first := p.broker.of(id)
		if at := p.row(t, id).publishedAt; len(first) != 1 || at == nil ||
			at.Before(first[0].ended.Add(-50*time.Millisecond)) {
			t.Errorf("published at %v, acknowledged %+v", at, first)
		}
		p.wantDelivered(t)
	})
}

// RL-5, C6, S6: an acknowledgement that comes when the lane is another's changes nothing and blames nobody.
func TestASettleThatLostItsLeaseChangesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		taken := make(chan struct{})
		p.broker.answer = func(_ context.Context, _ *publish.Message, try int) error {
			if try == 1 { // somebody takes all lanes while the broker acknowledges
				p.Exec(t, leases.Steal, leases.All())
				close(taken)
			}
			return nil
		}
		id := p.emit(t, placed.New("1", note{}))[0]
		// While the one event is in memory it reads no more, so the settle is what finds out.
		a := p.start(t, "a", with(longLease), with(func(s *relay.Settings) { s.Batch, s.MaxInFlight = 1, 1 }))
		eventually.Receive(t, "somebody has the lanes", taken)
		eventually.True(t, "a settle that came too late", func() bool { return a.Stats().StaleSettles > 0 })
		if r := p.row(t, id); r.state != ready || r.publishedAt != nil || r.attempts != 0 || r.lastError != "" {
			t.Errorf("a settle without the lease made of it %+v", r)
		}
		if len(p.logs.lines(t, "outcome", "settled too late: the lane is another relay's")) == 0 {
			t.Error("nothing was logged about it")
		}
		p.Exec(t, leases.Return)
		p.awaitPublished(t, 1)
		if n := len(p.broker.of(id)); n != 2 {
			t.Errorf("%d deliveries, want 2", n)
		}
		p.wantInOrder(t)
	})
}

// inLease is an answer that takes a twelfth of a lease, and checks that the publish must end before the lease does. On
// a busy machine the check alone may take that long: then it is the broker that is away, and no event is to blame.
func (p *env) inLease(t testing.TB, checked *atomic.Int64) func(context.Context, *publish.Message, int) error {
	t.Helper()
	return func(ctx context.Context, message *publish.Message, _ int) error {
		var left float64
		err := p.Pool.QueryRow(ctx, p.SQL(`SELECT extract(epoch FROM lease_until - clock_timestamp())::float8 
			FROM {schema}.outbox_lane_status
			WHERE lane = {schema}.outbox_lane($1, $2, $3)`), message.Namespace, message.AggregateType,
			message.AggregateID).Scan(&left)
		deadline, ok := ctx.Deadline()
		switch {
		case err != nil:
			return &publish.TopicError{Err: err}
		case !ok:
			t.Error("a publish without a deadline")
		case time.Until(deadline).Seconds() > left:
			t.Errorf("the publish may last %s, the lease %.3f s", time.Until(deadline), left)
		}
		checked.Add(1)
		select {
		case <-time.After(short / 12):
		case <-ctx.Done():
		}
		if err := ctx.Err(); err != nil {
			return &publish.TopicError{Err: err}
		}
		return nil
	}
}

// C6: however slow the broker, a publish ends before the lease does, because leases are renewed meanwhile.
func TestLeasesAreRenewedWhileTheBrokerIsSlow(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const aggregates, each = 3, 14 // longer than a lease
		var lost, checked atomic.Int64
		p.broker.answer = p.inLease(t, &checked)
		for n := range each {
			for aggregate := range aggregates {
				p.emit(t, placed.New(fmt.Sprint(aggregate), note{N: n}))
			}
		}
		p.start(t, "a", with(shortLease), func(config *relay.Config) {
			config.Observe = func(step relay.Step) {
				if step.Kind == relay.StepLose {
					lost.Add(1)
				}
			}
		})
		p.awaitPublished(t, aggregates*each)
		p.wantDelivered(t)
		if lost.Load() > 0 || checked.Load() < aggregates*each {
			t.Errorf("%d lanes lost, %d publishes looked at", lost.Load(), checked.Load())
		}
	})
}

// C6: where leases cannot be renewed, no publish begins that would outlive its own. So nothing is sent twice, although
// the lanes are lost.
func TestNoPublishOutlivesItsLease(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const aggregates, each = 3, 20 // longer than a lease
		var checked atomic.Int64
		p.broker.answer = p.inLease(t, &checked)
		for n := range each {
			for aggregate := range aggregates {
				p.emit(t, placed.New(fmt.Sprint(aggregate), note{N: n}))
			}
		}
		p.start(t, "a", with(shortLease))
		eventually.True(t, "the first acknowledgement", func() bool { return len(p.broker.took("0")) > 0 })
		tx := p.Begin(t) // heartbeats wait for it, in vain
		if _, err := tx.Exec(t.Context(),
			p.SQL("LOCK TABLE {schema}.outbox_beats IN SHARE ROW EXCLUSIVE MODE")); err != nil {
			t.Fatal(err)
		}
		ends := p.leaseEnds(t)
		eventually.True(t, "the leases' end", func() bool { return time.Now().After(ends.Add(100 * time.Millisecond)) })
		// What was in flight ends with its context, which inLease compares with the lease.
		eventually.True(t, "nothing in flight without a lease", func() bool { return p.broker.inFlight() == 0 })
		if p.inState(t, published) == aggregates*each {
			t.Fatal("all was sent before the leases' end: nothing was shown")
		}
		eventually.True(t, "a lane that is lost", func() bool { return len(p.logs.lines(t, "msg", "lane lost")) > 0 })
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		p.awaitPublished(t, aggregates*each)
		p.wantDelivered(t)
	})
}

// P1, C2: the broker has it and the settle never came: it is sent again, the same in every byte.
func TestWhatWasAcknowledgedAndNotSettledIsSentAgainUnderItsID(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		x := proxy.New(t, p.URL)
		p.broker.answer = func(context.Context, *publish.Message, int) error {
			x.Block()
			return nil
		}
		id := p.emit(t, placed.New("1", note{Text: "x"}))[0]
		a := p.start(t, "a", through(t, x), with(crashing))
		eventually.True(t, "the acknowledgement", func() bool { return len(p.broker.took("1")) == 1 })
		a.crash(t, x)
		p.broker.answer = nil
		if state := p.row(t, id).state; state != ready {
			t.Fatalf("the crash came too late: %d", state)
		}
		p.expire(t, "a")
		p.start(t, "b")
		p.awaitPublished(t, 1)
		got := p.broker.of(id)
		if len(got) != 2 || string(got[0].Body) != string(got[1].Body) || got[0].Key != got[1].Key ||
			fmt.Sprint(got[0].Attributes) != fmt.Sprint(got[1].Attributes) {
			t.Errorf("delivered as %+v", got)
		}
		p.wantInOrder(t)
	})
}

// S-1: the settle was applied and its answer lost. It is sent again and changes nothing.
func TestASettleWhoseAnswerIsLostIsAppliedOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		x := proxy.New(t, p.URL)
		x.Mute("SET state = 6") // the settle
		id := p.emit(t, placed.New("1", note{}))[0]
		var uncertain, applied atomic.Int64
		p.start(t, "a", through(t, x), func(config *relay.Config) {
			config.Database += "&default_query_exec_mode=exec" // a statement goes with its text
			config.Observe = func(step relay.Step) {
				switch {
				case step.Kind == relay.StepSettle && step.Result == relay.SettleUncertain:
					uncertain.Add(1)
				case step.Kind == relay.StepSettle && step.Result == relay.SettleApplied:
					applied.Add(1)
				}
			}
		})
		first := p.awaitState(t, id, published)
		x.Heal()
		eventually.True(t, "a settle with an answer", func() bool { return applied.Load() > 0 })
		if uncertain.Load() == 0 {
			t.Error("no answer was lost")
		}
		if again := p.row(t, id); !again.publishedAt.Equal(*first.publishedAt) || again.state != published {
			t.Errorf("settled twice: %+v, then %+v", first, again)
		}
		if n := p.broker.count(); n != 1 {
			t.Errorf("%d deliveries", n)
		}
		p.wantDelivered(t)
	})
}

// C16: relays that crash at the last attempt leave nothing behind that nobody takes.
func TestACrashAtTheLastAttemptStrandsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		rejection := &publish.RejectedError{Err: errors.New("not today")}
		var crashed atomic.Bool
		p.broker.answer = func(ctx context.Context, message *publish.Message, try int) error {
			switch {
			case try == 1 || crashed.Load() && message.AggregateID == "bad":
				return rejection
			case !crashed.Load():
				<-ctx.Done()
				return rejection // which the relay that hears it can write down nowhere
			}
			return nil
		}
		good, bad := p.emit(t, limited.New("good", note{}))[0], p.emit(t, limited.New("bad", note{}))[0]
		x := proxy.New(t, p.URL)
		a := p.start(t, "a", through(t, x), with(crashing))
		eventually.True(t, "both at their last attempt", func() bool {
			return p.broker.inFlight() == 2 && len(p.broker.of(good))+len(p.broker.of(bad)) == 4
		})
		a.crash(t, x)
		crashed.Store(true)
		for _, id := range []outbox.ID{good, bad} {
			if r := p.row(t, id); r.state != retrying || r.attempts != 1 {
				t.Fatalf("before the take-over: %+v", r)
			}
		}
		p.expire(t, "a")
		p.start(t, "b")
		if r := p.awaitState(t, good, published); r.attempts != 1 {
			t.Errorf("the good one: %+v", r)
		}
		if r := p.awaitState(t, bad, deadBlocking); r.attempts != 2 {
			t.Errorf("the bad one: %+v", r)
		}
		if p.Count(t, "SELECT count(*) FROM {schema}.outbox_dlq WHERE error_reason = 'max_attempts'") != 1 {
			t.Error("no dead letter")
		}
	})
}
