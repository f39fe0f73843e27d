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

// relics are events of long ago, with numbers behind $4: relic is their aggregate type.
const relics = `
WITH written AS (
    INSERT INTO public.outbox_events (seq, lane, id, event_type, aggregate_type, aggregate_id, payload_json, state,
        created_at, published_at)
    OVERRIDING SYSTEM VALUE
    SELECT $4::bigint + e.n, public.outbox_lane('default', 'relic', 'relic-' || e.n % 5000), e.id, 'thing_moved',
        'relic', 'relic-' || e.n % 5000, ('{"version":1,"eventId":"' || e.id
        || '","occurredAt":"2026-01-01T00:00:00.000000Z","data":{"filler":"' || repeat('x', 130) || '"}}')::json,
        CASE WHEN $3::smallint BETWEEN 1 AND 4 THEN 1 ELSE $3::smallint END,
        e.at, CASE WHEN $3::smallint = 6 THEN e.at END
      FROM (SELECT public.outbox_uuid7() AS id, n,
                   now() - $2::bigint * interval '1 microsecond' + n * interval '1 millisecond' AS at
              FROM generate_series(1, $1::integer) n OFFSET 0) e
    RETURNING lane, seq, namespace, event_type, aggregate_type, aggregate_id, state
)
INSERT INTO public.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
SELECT lane, seq, $3::smallint, now() + interval '300 days', namespace, event_type, aggregate_type, aggregate_id
  FROM written WHERE state = 1`

const requests = `
WITH chosen AS (SELECT id FROM public.outbox_events WHERE state = 6 ORDER BY seq LIMIT $1
), a AS (INSERT INTO public.outbox_actions (action_id, verb, event_id, actor)
       SELECT gen_random_uuid(), 'redeliver', id, 'proof' FROM chosen RETURNING action_id, event_id)
INSERT INTO public.outbox_requests (action_id, event_id, event_seq, lane, due_at) SELECT action_id, 
    event_id, 1, 0, now() + interval '1 year' FROM a`

// fill writes what retention meets: rows to delete, in groups that are younger from one to the next, and old ones that
// must stay. The numbers of the pairs that may come on top are left for them, before those of live events.
func (db *database) fill(ctx context.Context, plan Plan, say func(string, ...any)) error {
	for _, state := range []int{1, 3, 4, 5} {
		if err := db.insert(ctx, unsettled/4, 400*day, state, int64(state*unsettled)); err != nil {
			return err
		}
	}
	for pair := range plan.Pairs {
		rows := plan.perPair()
		if pair == 0 {
			rows += requested // these come on top
		}
		if err := db.insert(ctx, rows, plan.age(pair), 6, plan.behind(pair)); err != nil {
			return err
		}
		say("%d old events", (pair+1)*plan.perPair())
	}
	if _, err := db.Control.Exec(ctx, requests, requested); err != nil {
		return fmt.Errorf("retention: requests: %w", err)
	}
	if _, err := db.Control.Exec(ctx, "SELECT setval('public.outbox_events_seq_seq', $1)",
		plan.behind(plan.MostPairs)); err != nil {
		return fmt.Errorf("retention: the sequence: %w", err)
	}
	return db.Exec(ctx, "VACUUM ANALYZE public.outbox_events", "CHECKPOINT")
}

// insert writes old events with numbers behind one. It spares the server what leaves nothing behind: the checks of
// every row, and a flush of every commit.
func (db *database) insert(ctx context.Context, rows int, age time.Duration, state int, behind int64) error {
	if err := db.Exec(ctx, "SET session_replication_role = replica", "SET synchronous_commit = off"); err != nil {
		return err
	}
	for written := 0; written < rows; written += portion {
		if _, err := db.Control.Exec(ctx, relics, min(rows-written, portion), age.Microseconds(), state,
			behind+int64(written)); err != nil {
			return fmt.Errorf("retention: old events: %w", err)
		}
	}
	return db.Exec(ctx, "RESET session_replication_role", "RESET synchronous_commit")
}

// portion is how many old events one statement writes.
const portion = 50_000

// fillMore writes what retention meets in one more pair. It has been there already, so a day passes.
func (db *database) fillMore(ctx context.Context, plan Plan, pair int) error {
	if err := db.insert(ctx, plan.perPair(), plan.age(pair), 6, plan.behind(pair)); err != nil {
		return err
	}
	return db.Exec(ctx, "UPDATE public.outbox_retention SET round_at = round_at - interval '1 day'")
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
       count(*) FILTER (WHERE aggregate_type = 'relic' AND state IN (1, 5)), 
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
