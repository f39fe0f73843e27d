package memstore_test

import (
	"errors"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// TestASoftCursorWouldReorder is the interleaving that breaks a cursor with a rescan: 12 commits before
// 14 is drawn, and a read above 13 sees 14 alone. The read that is told who was open sees both.
func TestASoftCursorWouldReorder(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	first := d.Begin()
	d.write(first, d.event("a", "placed")) // 1, stays open
	d.emit("a2")                           // 2
	fence := d.fence()
	if fence.Last != 2 || len(fence.Writers) != 1 || fence.Writers[0] != first.Writer() {
		t.Fatalf("the fence is %+v", fence)
	}
	writers := []core.OpenWriter{{XID: fence.Writers[0].XID, Low: 0}}
	numbers, answer := d.read(core.Read{MaxBytes: plenty, Lanes: lane0(0, 2, 10), Writers: writers})
	wantNumbers(t, numbers)
	if len(answer.Gone) != 0 {
		t.Errorf("an open writer counts as gone: %v", answer.Gone)
	}
	d.commit(first)
	d.emit("a") // 3, after 1 had committed

	withoutWriters, _ := d.read(core.Read{MaxBytes: plenty, Lanes: lane0(0, 2, 10)})
	wantNumbers(t, withoutWriters, 3) // what a soft cursor does
	numbers, answer = d.read(core.Read{MaxBytes: plenty, Lanes: lane0(0, 2, 10), Writers: writers})
	wantNumbers(t, numbers, 1, 2, 3)
	if !slices.Equal(answer.Gone, []uint64{fence.Writers[0].XID}) {
		t.Errorf("gone: %v", answer.Gone)
	}
}

// TestAReadGoesBackToTheLowestOfThoseGone, and not to W, nor for those who are still open.
func TestAReadGoesBackToTheLowestOfThoseGone(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	d.emit("a", "a", "a", "a", "a", "a") // 1 to 6
	open, ended, rolledBack := d.Begin(), d.Begin(), d.Begin()
	for _, tx := range []*memstore.Tx{open, ended, rolledBack} {
		d.write(tx, d.event("a", "placed")) // 7, 8, 9
	}
	writers := []core.OpenWriter{
		{XID: open.Writer().XID, Low: 1},
		{XID: ended.Writer().XID, Low: 4},
		{XID: rolledBack.Writer().XID, Low: 5},
		{XID: 1 << 40, Low: 0},
	}
	d.commit(ended)
	rolledBack.Rollback()
	numbers, answer := d.read(core.Read{MaxBytes: plenty, Lanes: lane0(2, 9, 10), Writers: writers})
	wantNumbers(t, numbers, 5, 6, 8)
	if !slices.Equal(answer.Gone, []uint64{ended.Writer().XID, rolledBack.Writer().XID}) {
		t.Errorf("gone: %v", answer.Gone)
	}
	numbers, _ = d.read(core.Read{MaxBytes: plenty, Lanes: lane0(5, 9, 10), Writers: writers}) // W is never undercut
	wantNumbers(t, numbers, 6, 8)
}

// TestAReadIsCut by each lane's limit, after the filter, and by bytes.
func TestAReadIsCut(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	tx := d.Begin()
	d.write(tx, d.event("a", "paused"), d.event("a", "placed"), d.event("a", "placed"), d.event("b", "placed"),
		d.event("b", "placed"))
	d.commit(tx)
	lanes := []core.LaneRead{{Lane: 1, Limit: 1}, {Lane: 0, Limit: 2}}
	numbers, answer := d.read(core.Read{MaxBytes: plenty, Lanes: lanes})
	wantNumbers(t, numbers, 4, 1, 2)
	numbers, _ = d.read(core.Read{MaxBytes: plenty, Lanes: lanes, Exclude: []string{"paused"}})
	wantNumbers(t, numbers, 4, 2, 3)
	size := answer.Events[0].Bytes()
	numbers, answer = d.read(core.Read{Lanes: lanes, MaxBytes: size + 1})
	wantNumbers(t, numbers, 4, 1)
	if !answer.Stopped {
		t.Error("the read was cut by bytes and does not say so")
	}
}

// TestAReadOfALostLaneReadsNothing of it, and says so, even where it was cut before it came to the lane.
func TestAReadOfALostLaneReadsNothing(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	d.emit("a", "b", "c")
	d.acquire(d.owner, 0, 2)
	d.acquire(d.register(), 1)
	lanes := []core.LaneRead{{Lane: 0, Limit: 9}, {Lane: 1, Limit: 9}, {Lane: 2, Limit: 9}}
	for _, c := range []struct {
		bytes int
		want  []int64
	}{{plenty, []int64{1, 3}}, {1, []int64{1}}} {
		numbers, answer := d.read(core.Read{Owner: d.owner, MaxBytes: c.bytes, Lanes: lanes})
		wantNumbers(t, numbers, c.want...)
		if !slices.Equal(answer.Lost, []int16{1}) {
			t.Errorf("lost: %v", answer.Lost)
		}
	}
}

// TestWhatIsNotCommittedIsNotThere: neither for a read, nor for a settle that guesses the id.
func TestWhatIsNotCommittedIsNotThere(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	d.acquire(d.owner, 0)
	tx := d.Begin()
	kept, undone := d.event("a", "placed"), d.event("a", "placed")
	d.write(tx, kept)
	savepoint := tx.Savepoint()
	d.write(tx, undone)
	d.must(tx.RollbackTo(savepoint))
	drawn, err := tx.Draw()
	d.must(err)
	late := d.event("a", "placed")
	d.must(tx.EmitAt(drawn, late))
	d.settle(&core.Settle{Lanes: []int16{0}, Published: d.rows(kept.ID)})
	numbers, _ := d.read(core.Read{MaxBytes: plenty, Lanes: lane0(0, 0, 10)})
	wantNumbers(t, numbers)
	d.commit(tx)
	numbers, _ = d.read(core.Read{MaxBytes: plenty, Lanes: lane0(0, 0, 10)})
	wantNumbers(t, numbers, 1, 3)
	if _, found := d.Event(undone.ID); found {
		t.Error("a savepoint did not take its event back")
	}
	if fence := d.fence(); len(fence.Writers) != 0 {
		t.Errorf("writers after the commit: %v", fence.Writers)
	}
}

// TestAFenceInTwoHalves: whoever draws between the value and the listing is listed, and above the value.
func TestAFenceInTwoHalves(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	before, between := d.Begin(), d.Begin()
	d.write(before, d.event("a", "placed")) // 1
	half := d.FenceBegin()
	drawn, err := between.Draw() // 2, no xid yet
	d.must(err)
	d.commit(before)
	fence, err := half.End()
	d.must(err)
	if fence.Last != 1 || drawn != 2 || len(fence.Writers) != 1 || fence.Writers[0] != between.Writer() ||
		fence.Writers[0].XID != 0 {
		t.Errorf("drew %d, the fence is %+v", drawn, fence)
	}
	half = d.FenceBegin()
	d.Restart()
	if _, err := half.End(); err == nil {
		t.Error("a fence outlived the server")
	}
}

// TestARestartTakesBackWhatWasNotDurable: numbers and asynchronous commits, unless a barrier came first.
func TestARestartTakesBackWhatWasNotDurable(t *testing.T) {
	t.Parallel()
	for _, barrier := range []bool{false, true} {
		d := newDB(t)
		d.emit("a") // 1
		lazy, rolledBack, open := d.Begin(), d.Begin(), d.Begin()
		event := d.event("a", "placed")
		d.write(lazy, event)                        // 2
		d.write(rolledBack, d.event("a", "placed")) // 3
		d.write(open, d.event("a", "placed"))       // 4
		d.must(lazy.CommitAsync())
		rolledBack.Rollback()
		if barrier {
			d.must(d.Barrier(t.Context(), ""))
		}
		was := d.incarnation()
		d.Restart()
		if err := open.Commit(); !errors.Is(err, memstore.ErrEnded) {
			t.Errorf("a commit after the restart: %v", err)
		}
		_, found := d.Event(event.ID)
		now := d.FenceBegin()
		fence, err := now.End()
		d.must(err)
		if want := map[bool]int64{false: 1, true: 4}[barrier]; fence.Last != want || found != barrier {
			t.Errorf("barrier %v: the sequence came back as %d, want %d; the event is there: %v", barrier, fence.Last,
				want, found)
		}
		if fence.Incarnation == was {
			t.Error("the incarnation did not change")
		}
	}
}

// TestAStandbyRunsAheadAndRefusesToWrite.
func TestAStandbyRunsAheadAndDoesNotWrite(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	d.emit("a")
	d.SetStandby(true)
	if fence := d.fence(); !fence.Standby || fence.Last <= 1 {
		t.Errorf("the fence of a standby is %+v", fence)
	}
	if err := d.Barrier(t.Context(), ""); !errors.Is(err, memstore.ErrStandby) {
		t.Errorf("a barrier on a standby: %v", err)
	}
	if _, err := d.Settle(t.Context(), &core.Settle{}); !errors.Is(err, memstore.ErrStandby) {
		t.Errorf("a settle on a standby: %v", err)
	}
}

// TestASweepFindsReadyRowsBelowTheFloor.
func TestASweepFindsReadyRowsBelowTheFloor(t *testing.T) {
	t.Parallel()
	d := newDB(t)
	d.emit("a", "b", "a", "a")
	floors := []core.Floor{{Lane: 0, Seq: 3}, {Lane: 1, Seq: 1}}
	found, err := d.Sweep(t.Context(), core.Sweep{Floors: floors, Limit: 10})
	d.must(err)
	if !slices.Equal(found.Found, []core.Floor{{Lane: 0, Seq: 1}, {Lane: 0, Seq: 3}}) {
		t.Errorf("found %v", found)
	}
	if found, _ := d.Sweep(t.Context(), core.Sweep{Floors: floors[:1], Limit: 1}); len(found.Found) != 1 {
		t.Errorf("found %v with a limit of 1", found)
	}
}
