package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
)

// Nothing that publishing changes is in an index, so events are not found by when they were published. They are walked
// through by their numbers, in all lanes at once, from the low end until they become too young. What must stay is
// stepped over. How far the walk came is remembered: the next run goes on from there, and walks over nothing that is
// deleted. Once per day a round begins again at the low end, for what was settled late.
//
// A number is drawn after its event's transaction has begun, so behind an event that is too young only those can be old
// enough whose transaction lasted long. But the clock may have been wrong for a while: so a few young ones do not end a
// walk, only a batch of which they are the greater part.

// step is what a walk met between two numbers.
type step struct {
	looked, last     int64 // how many events, and the number of the last
	old, young       int64 // how many of them
	firstYoung       int64 // its number
	published, other int64 // how many went
	// The ranges of the numbers that went.
	firsts, lasts, events []int64
}

// walk deletes events up to the cut-off.
func (r *run) walk(ctx context.Context, cutOff time.Time) error {
	place, highest, err := r.round(ctx)
	if err != nil {
		return err
	}
	pace := pace{size: r.config.Batch, most: r.config.Batch}
	width := int64(pace.size)
	var young int64 // the number of the first event that is too young; 0: none
	for place < highest {
		size, to, began := int64(pace.size), min(place+width, highest), time.Now()
		var met step
		next, stays := to, young
		err := r.once(ctx, func(tx pgx.Tx) (int64, *int64, error) {
			err := r.take(ctx, tx, &met, place, to, cutOff, size)
			next, stays = met.goOn(size, to, young)
			remembered := next
			if stays > 0 {
				remembered = stays - 1
			}
			return met.published + met.other, &remembered, err
		})
		took := time.Since(began)
		if stop := pace.after(took, err); stop != nil {
			return stop
		}
		if err == nil {
			r.note(took, met.published, met.other)
			if met.full(size) && met.young > met.old {
				return nil
			}
			place, young = next, stays
		}
		width = met.width(width, int64(pace.size), err != nil || took > longBatch, size)
		rest := took // half of the time at most, so that a slow server is not kept busy
		if met.published+met.other > 0 || err != nil {
			rest = max(r.config.Pause, took)
		}
		if !r.rest(ctx, rest) {
			return ctx.Err()
		}
	}
	return nil
}

// take deletes what is due between two numbers, and writes down which numbers went.
func (r *run) take(ctx context.Context, tx pgx.Tx, met *step, place, to int64, cutOff time.Time, size int64) error {
	err := tx.QueryRow(ctx, r.statement("events"), place, to, cutOff, size).Scan(&met.looked, &met.last, &met.old,
		&met.young, &met.firstYoung, &met.published, &met.other, &met.firsts, &met.lasts, &met.events)
	if err != nil || len(met.firsts) == 0 {
		return err //nolint:wrapcheck // once says what it was
	}
	_, err = tx.Exec(ctx, r.statement("pruned"), met.firsts, met.lasts, met.events)
	return err //nolint:wrapcheck // once says what it was
}

// round begins where the last run stopped, or anew.
func (r *run) round(ctx context.Context) (place, highest int64, err error) {
	// So that a round begins at least once per day, also where a run comes once per day.
	length := max(roundLength-r.config.Every, 0)
	err = r.inTx(ctx, statementTimeout, func(tx pgx.Tx) error {
		return tx.QueryRow(ctx, r.statement("round"), r.kind.name, r.worker, length.Milliseconds()).Scan(&place, &highest)
	})
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, 0, errTaken
	}
	if err != nil {
		return 0, 0, fmt.Errorf("round: %w", err)
	}
	return place, highest, nil
}

// full tells whether there were enough events to tell young from old: what must stay is left alone between numbers that
// are deleted.
func (s step) full(size int64) bool { return 2*s.looked >= size }

// goOn is where the next step begins, and which is the first event that is too young so far. The next run begins there,
// unless it turns out to be an exception: most that came after it were old.
func (s step) goOn(size, to, young int64) (next, firstYoung int64) {
	next = to
	if s.looked >= size { // there may be more up to that number
		next = s.last
	}
	if young == 0 || s.full(size) && s.old >= s.young {
		young = s.firstYoung
	}
	return next, young
}

// width is over how many numbers the next step goes: as many as a batch has rows, and more where they are nobody's. A
// snapshot may hold them although they are deleted, so it takes time to find that out.
func (s step) width(width, size int64, tooLong bool, asked int64) int64 {
	switch {
	case s.full(asked):
		return size
	case tooLong:
		return max(width/2, size)
	default:
		return min(2*width, mostNumbers)
	}
}
