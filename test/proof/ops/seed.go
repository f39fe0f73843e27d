package ops

import (
	"context"
	"errors"
	"fmt"

	"github.com/posthaste-dev/posthaste/outbox"
)

// seeds are orders as a relay would have left them: one of each of $1 aggregates, one in $2 of which
// has the blocking type, in the state $3; where $4 is not null, only of those that have it, or that have not. Dead ones
// have their letter.
const seeds = `
WITH written AS (
    INSERT INTO public.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, attempt_count,
        state, last_error)
    SELECT public.outbox_lane('default', 'order', e.aggregate::text), e.id,
        CASE e.aggregate % $2::integer WHEN 0 THEN 'order_held' ELSE 'order_placed' END, 'order', e.aggregate::text,
        ('{"version":1,"eventId":"' || e.id || '","occurredAt":"2026-01-01T00:00:00.000000Z","data":{"filler":"'
        || repeat('x', 130) || '"}}')::json,
        CASE $3::smallint WHEN 3 THEN 0 ELSE 3 END, CASE $3::smallint WHEN 5 THEN 5 ELSE 1 END,
        CASE $3::smallint WHEN 3 THEN NULL ELSE 'the topic did not take it' END
      FROM (SELECT public.outbox_uuid7() AS id, n AS aggregate
              FROM generate_series(0, $1::integer - 1) n
             WHERE $4::boolean IS NULL OR (n % $2::integer = 0) = $4::boolean ORDER BY n OFFSET 0) e
    RETURNING *
), holding AS (
    INSERT INTO public.outbox_held (lane, seq, kind, namespace, event_type, aggregate_type, aggregate_id)
    SELECT lane, seq, $3::smallint, namespace, event_type, aggregate_type, aggregate_id FROM written WHERE state = 1
), letters AS (
    INSERT INTO public.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
        aggregate_type, aggregate_id, topic, error_reason, payload_json)
    SELECT seq, id, created_at, attempt_count, $3::smallint = 4, namespace, event_type, aggregate_type, aggregate_id,
        'orders', 'rejected', payload_json FROM written WHERE $3::smallint IN (4, 5) ORDER BY seq
)
SELECT id FROM written`

// seed is an order that was there before.
type seed struct{ ID outbox.ID }

// fill writes the dead letters and those who wait behind them, and returns their ids. Of an aggregate that blocks the
// last dead one does.
func (db *database) fill(ctx context.Context, plan Plan) (all []outbox.ID, err error) {
	if plan.Dead%plan.Aggregates != 0 || plan.Aggregates%plan.BlockedEvery != 0 {
		return nil, fmt.Errorf("ops: %d dead letters are not the same number for each of %d aggregates", plan.Dead,
			plan.Aggregates)
	}
	yes, no := true, false
	write := func(state int, blocking *bool) error {
		list, err := read[seed](ctx, db, seeds, plan.Aggregates, plan.BlockedEvery, state, blocking)
		for _, one := range list {
			all = append(all, one.ID)
		}
		return err
	}
	for range plan.Dead/plan.Aggregates - 1 {
		if err := write(5, nil); err != nil {
			return nil, err
		}
	}
	if err := errors.Join(write(4, &yes), write(5, &no)); err != nil {
		return nil, err
	}
	for range plan.Followers {
		if err := write(3, &yes); err != nil {
			return nil, err
		}
	}
	if err := db.Exec(ctx, "VACUUM ANALYZE public.outbox_events", "VACUUM ANALYZE public.outbox_dlq",
		"VACUUM ANALYZE public.outbox_held"); err != nil || !plan.TimesDecide {
		return all, err
	}
	return all, db.Checkpoint(ctx) // it may take a while, and is somebody's latency otherwise
}
