package retention

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// database is the run's own.
type database struct {
	*bench.Outbox
	janitor *pgxpool.Pool // retention's connections, which are known by their name
	watcher *pgxpool.Pool
}

const janitorName = "proof-janitor"

func newDatabase(ctx context.Context, plan Plan) (_ *database, err error) {
	db := &database{}
	if db.Outbox, err = bench.NewOutbox(ctx, plan.URL, plan.Workers+2); err != nil {
		return nil, err
	}
	if db.janitor, err = db.Pool(ctx, janitorName, 2); err == nil {
		if db.watcher, err = db.Pool(ctx, "proof-watcher", 1); err == nil {
			err = db.Exec(ctx, countDeleted...)
		}
	}
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Close drops the database.
func (db *database) Close() error {
	for _, pool := range []*pgxpool.Pool{db.janitor, db.watcher} {
		if pool != nil {
			pool.Close()
		}
	}
	return db.Outbox.Close()
}

// countDeleted notes how many rows each statement deletes and how long it takes, whoever runs it and however.
var countDeleted = []string{
	"CREATE TABLE public.proof_deleted (deleted bigint, took interval)",
	`CREATE FUNCTION public.proof_note_deleted() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN INSERT INTO public.proof_deleted SELECT count(*), clock_timestamp() - statement_timestamp() 
		FROM gone; RETURN NULL; END $$`,
	`CREATE TRIGGER proof_note_deleted AFTER DELETE ON public.outbox_events REFERENCING OLD TABLE AS gone
		EXECUTE FUNCTION public.proof_note_deleted()`,
	"ALTER TABLE public.outbox_events ENABLE ALWAYS TRIGGER proof_note_deleted",
}

// blocked counts who waits for a lock that retention holds. pg_blocking_pids stops everybody for a moment, so only
// those that wait are asked about.
const blocked = `
SELECT count(*) FROM pg_stat_activity a
 WHERE a.datname = current_database() AND CASE WHEN a.wait_event_type = 'Lock' AND a.application_name <> $1
       THEN EXISTS (SELECT FROM pg_stat_activity j WHERE j.application_name = $1 AND j.datname = current_database()
                       AND j.pid = ANY (pg_blocking_pids(a.pid))) END`

// blockedNow is how many wait for retention at this moment.
func (db *database) blockedNow(ctx context.Context) (n int, err error) {
	if err = db.watcher.QueryRow(ctx, blocked, janitorName).Scan(&n); err != nil {
		return 0, fmt.Errorf("retention: who is blocked: %w", err)
	}
	return n, nil
}

// relics are events of long ago: relic is their aggregate type.
const relics = `
INSERT INTO public.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, created_at, 
    published_at, next_attempt_at)
SELECT e.id, 'thing_moved', 'relic', 'relic-' || e.n % 5000, 
       ('{"version":1,"eventId":"' || e.id || '","occurredAt":"2026-01-01T00:00:00.000000Z","data":{"filler":"'
    || repeat('x', 130) || '"}}')::json, $3::smallint, now() - interval '400 days',
    CASE WHEN $3::smallint = 6 THEN now() - $2::bigint * interval '1 microsecond' - e.n * interval '1 millisecond' END,
    CASE WHEN $3::smallint = 1 THEN now() + interval '300 days' END
  FROM (SELECT public.outbox_uuid7() AS id, n FROM generate_series(1, $1::integer) n OFFSET 0) e`

const requests = `
WITH chosen AS (SELECT id FROM public.outbox_events WHERE published_at < now() - interval '1 day' ORDER BY published_at 
    LIMIT $1
), a AS (INSERT INTO public.outbox_actions (action_id, verb, event_id, actor)
       SELECT gen_random_uuid(), 'redeliver', id, 'proof' FROM chosen RETURNING action_id, event_id)
INSERT INTO public.outbox_requests (action_id, event_id, event_seq, layout, lane, next_attempt_at) SELECT action_id, 
    event_id, 1, 0, 0, now() + interval '1 year' FROM a`

// fill writes what retention meets: rows to delete, in groups of growing age, and old ones that must stay.
func (db *database) fill(ctx context.Context, plan Plan, say func(string, ...any)) error {
	// Spares the server what leaves nothing behind: the checks of every row, and a flush of every commit.
	if err := db.Exec(ctx, "SET session_replication_role = replica", "SET synchronous_commit = off"); err != nil {
		return err
	}
	for pair := range plan.Pairs {
		rows := plan.perPair()
		if pair == 0 {
			rows += requested // these come on top
		}
		if err := db.insert(ctx, rows, plan.age(pair), 6); err != nil {
			return err
		}
		say("%d old events", (pair+1)*plan.perPair())
	}
	for _, state := range []int{1, 3, 4, 5} {
		if err := db.insert(ctx, unsettled/4, 400*day, state); err != nil {
			return err
		}
	}
	if _, err := db.Control.Exec(ctx, requests, requested); err != nil {
		return fmt.Errorf("retention: requests: %w", err)
	}
	return db.Exec(ctx, "RESET session_replication_role", "RESET synchronous_commit",
		"VACUUM ANALYZE public.outbox_events", "CHECKPOINT")
}

// insert writes old events.
func (db *database) insert(ctx context.Context, rows int, age time.Duration, state int) error {
	for left := rows; left > 0; left -= 50_000 {
		if _, err := db.Control.Exec(ctx, relics, min(left, 50_000), age.Microseconds(), state); err != nil {
			return fmt.Errorf("retention: old events: %w", err)
		}
	}
	return nil
}

// fillMore writes what retention meets in one more pair.
func (db *database) fillMore(ctx context.Context, plan Plan, pair int) error {
	if err := db.Exec(ctx, "SET session_replication_role = replica", "SET synchronous_commit = off"); err != nil {
		return err
	}
	if err := db.insert(ctx, plan.perPair(), plan.age(pair), 6); err != nil {
		return err
	}
	return db.Exec(ctx, "RESET session_replication_role", "RESET synchronous_commit")
}

// left is what is in the tables at the end.
type left struct {
	due       int // published relics that nobody has asked for again
	requested int
	unsettled int
	live      int
	slowest   time.Duration // of the statements that delete, by the server's clock
	largest   int64         // rows that one statement deleted
}

const leftQuery = `
SELECT count(*) FILTER (WHERE aggregate_type = 'relic' AND state = 6 AND r.event_id IS NULL), 
       count(*) FILTER (WHERE r.event_id IS NOT NULL),
       count(*) FILTER (WHERE aggregate_type = 'relic' AND state IN (1, 3, 4, 5)), 
       count(*) FILTER (WHERE aggregate_type = 'thing' AND aggregate_id <> 'probe'),
       (SELECT coalesce(max(took), '0') FROM public.proof_deleted), 
       (SELECT coalesce(max(deleted), 0) FROM public.proof_deleted)
  FROM public.outbox_events e LEFT JOIN public.outbox_requests r ON r.event_id = e.id`

func (db *database) left(ctx context.Context) (left, error) {
	var l left
	if err := db.Control.QueryRow(ctx, leftQuery).Scan(&l.due, &l.requested, &l.unsettled, &l.live, &l.slowest,
		&l.largest); err != nil {
		return l, fmt.Errorf("retention: what is left: %w", err)
	}
	return l, nil
}
