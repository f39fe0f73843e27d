package memstore_test

import (
	"context"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// churn runs random producers, settles and verbs.
func churn(ctx context.Context, seed uint64, steps int, look func(*memstore.Store)) error {
	rng := rand.New(rand.NewPCG(seed, 0))
	var now time.Duration
	store := memstore.New(memstore.Config{
		Lane:  func(a core.Aggregate) int16 { return int16(a.ID[0]) % 64 },
		Clock: func() time.Duration { return now },
	})
	var ids []outbox.ID
	pick := func() outbox.ID { return ids[rng.IntN(len(ids))] }
	for step := range steps {
		now += time.Duration(rng.IntN(1000)) * time.Millisecond
		if len(ids) == 0 || rng.IntN(4) == 0 {
			tx := store.Begin()
			id := number(uint64(len(ids)))
			if _, err := tx.Emit(core.Event{
				ID: id, Type: "placed", Aggregate: core.Aggregate{ID: string(rune('a' + rng.IntN(8)))},
			}); err != nil {
				return err
			}
			if err := tx.Commit(); err != nil {
				return err
			}
			ids = append(ids, id)
			continue
		}
		settle := &core.Settle{}
		switch rng.IntN(8) {
		case 0:
			event, _ := store.Event(pick())
			settle.Published = []core.Found{event.Found()}
		case 1:
			event, _ := store.Event(pick())
			settle.Retry = []core.Retry{{Found: event.Found(), Delay: time.Duration(rng.IntN(5)) * time.Second}}
		case 2:
			event, _ := store.Event(pick())
			settle.Wait = []core.Found{event.Found()}
		case 3:
			event, _ := store.Event(pick())
			settle.Park = []core.Park{{Found: event.Found()}}
		case 4:
			event, _ := store.Event(pick())
			settle.Dead = []core.Death{{Found: event.Found(), Blocking: rng.IntN(2) == 0}}
		case 5:
			if _, err := store.Operate(check.Redrive, memstore.Order{Action: number(uint64(step))}, pick()); err != nil {
				return err
			}
		case 6:
			if _, err := store.Operate(check.Skip, memstore.Order{Action: number(uint64(step))}, pick()); err != nil {
				return err
			}
		default:
			if _, err := store.Read(ctx, core.Read{
				MaxBytes: plenty, Lanes: []core.LaneRead{{Lane: 'a' % 64, Limit: 8}, {Lane: 'b' % 64, Limit: 8}},
			}); err != nil {
				return err
			}
		}
		if _, err := store.Settle(ctx, settle); err != nil {
			return err
		}
		look(store)
	}
	return nil
}

// TestTheIndexesAgreeWithTheRows: whatever happens, what the readers find by index is what a scan finds.
func TestTheIndexesAgreeWithTheRows(t *testing.T) {
	t.Parallel()
	compared := 0
	look := func(store *memstore.Store) {
		var all []core.LaneRead
		var lanes []int16
		var queries []core.HeldAsk
		for lane := int16('a' % 64); lane < 'a'%64+8; lane++ {
			all = append(all, core.LaneRead{Lane: lane, Limit: 1 << 20})
			lanes = append(lanes, lane)
			queries = append(queries, core.HeldAsk{
				Lane: lane, Aggregate: core.Aggregate{ID: string(rune('a' + lane - 'a'%64))}, Types: []string{"placed"},
			})
		}
		dueKeys := core.DueKeys{Limit: 1 << 20}
		for _, lane := range lanes {
			dueKeys.Lanes = append(dueKeys.Lanes, core.LaneFrom{Lane: lane})
		}
		var found []int64
		answer, _ := store.Read(t.Context(), core.Read{MaxBytes: plenty, Lanes: all})
		for _, e := range answer.Events {
			found = append(found, e.Seq)
		}
		held, _ := store.HeldRows(t.Context(), core.HeldRows{Asks: queries, Limit: 1 << 20})
		for _, e := range held.Events {
			found = append(found, e.Seq)
		}
		parked, _ := store.OldParked(t.Context(), core.OldParked{Lanes: core.FromStart(lanes...), Limit: 1 << 20})
		due, _ := store.DueKeys(t.Context(), dueKeys)
		var want []int64
		wantParked, wantRetrying := 0, 0
		for _, r := range store.Events() {
			if r.State <= core.DeadBlocking {
				want = append(want, r.Seq)
			}
			if r.State == core.Parked {
				wantParked++
			}
			if r.State == core.Retrying {
				wantRetrying++
			}
		}
		slices.Sort(found)
		if !slices.Equal(found, want) || len(parked.Events) != wantParked || len(due.Keys) > wantRetrying {
			t.Fatalf("the indexes have %v, the rows %v; parked %d of %d; due %d of %d", found, want, len(parked.Events),
				wantParked, len(due.Keys), wantRetrying)
		}
		compared++
	}
	for seed := range uint64(20) {
		if err := churn(t.Context(), seed, 200, look); err != nil {
			t.Fatal(err)
		}
	}
	if compared < 1000 {
		t.Errorf("compared %d times", compared)
	}
}

// BenchmarkSimulation is one simulation's worth of calls on a new store: 400 steps.
func BenchmarkSimulation(b *testing.B) {
	for seed := range uint64(b.N) {
		if err := churn(b.Context(), seed, 400, func(*memstore.Store) {}); err != nil {
			b.Fatal(err)
		}
	}
}
