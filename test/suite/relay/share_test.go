package relay

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// RL-1, RL-3, C1: relays join while events are emitted; lanes move, and no event is delivered by two of them.
func TestSeveralRelaysPublishEveryEventOnceAndInOrder(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const producers, aggregates, each = 4, 12, 12
		names := []string{"a", "b", "c"}
		p.start(t, names[0])
		var group sync.WaitGroup
		for producer := range producers {
			group.Go(func() {
				for n := range each {
					for aggregate := range aggregates {
						if err := p.tryEmit(t.Context(), placed.New(fmt.Sprint(producer, "-", aggregate), note{N: n})); err != nil {
							t.Error(err)
						}
					}
				}
			})
		}
		for _, name := range names[1:] {
			p.start(t, name)
		}
		group.Wait()
		eventually.True(t, "three relays with a third of the lanes each", func() bool {
			return p.Count(t, `SELECT count(*) 
				FROM (SELECT owner FROM {schema}.outbox_lane_status WHERE lease_until > clock_timestamp()
				GROUP BY owner HAVING count(*) BETWEEN 21 AND 22) fair`) == 3
		})
		p.awaitPublished(t, producers*aggregates*each)
		p.wantDelivered(t)
		// Now all three have lanes, so all three publish.
		for i := range 120 {
			p.emit(t, placed.New(fmt.Sprint("shared-", i), note{}))
		}
		p.awaitPublished(t, producers*aggregates*each+120)
		p.wantDelivered(t)
		for _, name := range names {
			if n := len(p.broker.deliveries(func(d *delivery) bool { return d.relay == name })); n == 0 {
				t.Errorf("relay %s has delivered nothing", name)
			}
		}
	})
}

// sameLane finds aggregates of one lane.
func (p *env) sameLane(t testing.TB, n int) []string {
	t.Helper()
	rows, err := p.Pool.Query(t.Context(), p.SQL(`SELECT i::text FROM generate_series(1, 10000) i
		WHERE {schema}.outbox_lane('default', 'order', i::text) = 7 LIMIT $1`), n)
	if err != nil {
		t.Fatal(err)
	}
	defer rows.Close()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	return ids
}

// RL-3: within a lane oldest first.
func TestWithinALaneTheOldestGoFirst(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		var want []outbox.ID
		for i, aggregate := range p.sameLane(t, 30) {
			event := placed.New(aggregate, note{N: i})
			want = append(want, p.emit(t, event)...)
		}
		p.start(t, "a", with(longLease), with(func(s *relay.Settings) { s.Concurrency, s.Batch = 1, 7 }))
		p.awaitPublished(t, len(want))
		var got []outbox.ID
		for _, d := range p.broker.deliveries(func(*delivery) bool { return true }) {
			got = append(got, d.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("delivered %v, want %v", got, want)
		}
	})
}

// RL-3: across lanes fair. A backlog of one aggregate is old, and the others do not wait for it.
func TestALongBacklogDoesNotHoldUpOtherAggregates(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const backlog, others = 400, 10
		var events []outbox.Event
		for n := range backlog {
			events = append(events, placed.New("busy", note{N: n}))
		}
		for i := range others {
			events = append(events, placed.New(fmt.Sprint("other-", i), note{}))
		}
		p.emit(t, events...)
		var left atomic.Int64
		left.Store(others)
		gone := make(chan struct{})
		p.broker.answer = func(ctx context.Context, message *publish.Message, _ int) error {
			d := &delivery{Message: *message}
			switch {
			case message.AggregateID != "busy":
				if left.Add(-1) == 0 {
					close(gone)
				}
			case d.n() == backlog/4: // the others have time to come, however slow the machine is
				select {
				case <-gone:
				case <-ctx.Done():
					t.Error("the others do not come while the backlog waits")
				}
			}
			return nil
		}
		p.start(t, "a", with(longLease), with(func(s *relay.Settings) { s.Batch = 50 }))
		p.awaitPublished(t, backlog+others)
		ahead, last := 0, 0
		for i, d := range p.broker.deliveries(func(*delivery) bool { return true }) {
			if d.AggregateID != "busy" {
				last = i
			}
		}
		for _, d := range p.broker.deliveries(func(*delivery) bool { return true })[:last] {
			if d.AggregateID == "busy" {
				ahead++
			}
		}
		if ahead > backlog/4+1 {
			t.Errorf("%d of %d events of the backlog went before the last of the others", ahead, backlog)
		}
		p.wantDelivered(t)
	})
}
