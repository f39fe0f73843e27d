package retention_test

import (
	"fmt"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/relay/retention"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// The states of outbox_events.
const (
	ready = iota
	retrying
	parked
	waiting
	deadBlocking
	dead
	published
	discarded
)

const day = 24 * time.Hour

// An env is an outbox with old things in it, and a role that may do what retention needs and no more.
type env struct {
	*pgtest.DB
	role    string
	janitor *pgxpool.Pool
	logs    *logs
}

func onEach(t *testing.T, test func(t *testing.T, s *env)) {
	t.Helper()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		role := pgtest.NewRole(t, db.Server, "janitor")
		db.Exec(t, "SELECT {schema}.outbox_grant('janitor', $1)", role)
		test(t, &env{DB: db, role: role, janitor: asRole(t, db, role), logs: &logs{}})
	})
}

func asRole(t testing.TB, db *pgtest.DB, role string) *pgxpool.Pool {
	t.Helper()
	return db.Open(t, pgtest.As(t, db.URL, role), "search_path", "")
}

// retention is one as the janitor, without pauses.
func (s *env) retention(t testing.TB, change ...func(*retention.Config)) *retention.Runner {
	t.Helper()
	config := retention.Config{Schema: s.Schema, Pause: -1, Logger: slog.New(slog.NewTextHandler(s.logs, nil))}
	for _, change := range change {
		change(&config)
	}
	made, err := retention.New(s.janitor, config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (s *env) once(t testing.TB, change ...func(*retention.Config)) retention.Result {
	t.Helper()
	result, err := s.retention(t, change...).Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Busy) > 0 {
		t.Fatalf("somebody else is at %v", result.Busy)
	}
	return result
}

// went is what a run deleted and refused, in words.
func went(r retention.Result) string {
	text := fmt.Sprintf("published=%d discarded=%d dead=%d dedupe=%d", r.Published, r.Discarded, r.Dead, r.Dedupe)
	for _, halt := range r.Halted {
		text += " refused=" + halt.Kind
	}
	return text
}

func (s *env) wantWent(t testing.TB, got retention.Result, want string) {
	t.Helper()
	if went(got) != want {
		t.Errorf("%s\nwant %s\n%+v", went(got), want, got.Halted)
	}
}

// event is one that was created and, where it was, published so long ago.
func (s *env) event(t testing.TB, state int, age time.Duration) string {
	t.Helper()
	return s.text(t, `WITH e AS (
		INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, created_at,
			published_at)
		SELECT id, 'order_created', 'order', '1', ('{"eventId":"' || id || '"}')::json,
			CASE WHEN $1::smallint BETWEEN 1 AND 4 THEN 1 ELSE $1::smallint END, at, CASE WHEN $1 = 6 THEN at END
		  FROM (SELECT {schema}.outbox_uuid7() AS id, now() - $2::bigint * interval '1 microsecond' AS at OFFSET 0) e
		RETURNING *
	), held AS (
		INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
		SELECT lane, seq, $1, created_at, namespace, event_type, aggregate_type, aggregate_id FROM e WHERE state = 1
	) SELECT id::text FROM e`, state, age.Microseconds())
}

// events makes many published ones, whose ages are a second apart: the oldest has the lowest number.
func (s *env) events(t testing.TB, count int, age time.Duration) {
	t.Helper()
	s.Exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, state,
			created_at, published_at)
		SELECT {schema}.outbox_lane('default', 'order', n::text), {schema}.outbox_uuid7(), 'order_created', 'order', n::text,
			'{}', 6, at, at
		  FROM (SELECT n, now() - $2::bigint * interval '1 microsecond' - n * interval '1 second' AS at
		          FROM generate_series($1::bigint, 1, -1) n ORDER BY n DESC) e`, count, age.Microseconds())
}

// nextRound is as if a day had passed since the last round.
func (s *env) nextRound(t testing.TB) {
	t.Helper()
	s.Exec(t, "UPDATE {schema}.outbox_retention SET round_at = round_at - interval '1 day'")
}

// walked is how far the round has come.
func (s *env) walked(t testing.TB) int {
	t.Helper()
	return s.Count(t, "SELECT place FROM {schema}.outbox_retention WHERE kind = 'published'")
}

// letter is a dead letter that was written so long ago.
func (s *env) letter(t testing.TB, age time.Duration) string {
	t.Helper()
	return s.text(t, `INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, failed_at, attempts, blocking, 
		namespace, event_type, aggregate_type, aggregate_id, error_reason, payload_json)
		SELECT 1, {schema}.outbox_uuid7(), at, at, 10, true, 'default', 'order_created', 'order', '1', 'max_attempts', '{}'
		  FROM (SELECT now() - $1::bigint * interval '1 microsecond' AS at) a RETURNING id::text`, age.Microseconds())
}

// act writes an action about an event, and about a dead letter if one is given. Answers the action's id.
func (s *env) act(t testing.TB, verb, event, letter string, age time.Duration) string {
	t.Helper()
	return s.text(t, `INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor, acted_at)
		VALUES (gen_random_uuid(), $1, $2::text::uuid, nullif($3, '')::text::bigint, 'ada', 
		now() - $4::bigint * interval '1 microsecond') RETURNING action_id::text`,
		verb, event, letter, age.Microseconds())
}

// request asks for a published event once more.
func (s *env) request(t testing.TB, event, letter string) {
	t.Helper()
	s.Exec(t, "INSERT INTO {schema}.outbox_requests (action_id, event_id, event_seq, lane) VALUES "+
		"($1::text::uuid, $2::text::uuid, 1, 1)",
		s.act(t, "redeliver", event, letter, 0), event)
}

// key is a dedupe key of so long ago.
func (s *env) key(t testing.TB, key, event string, age time.Duration) {
	t.Helper()
	s.Exec(t, `INSERT INTO {schema}.outbox_dedupe (event_id, created_at, namespace, event_type, tenant_id, dedupe_key, 
		content_hash)
		VALUES ($2::text::uuid, now() - $3::bigint * interval '1 microsecond', 'default', 'order_created', '', $1, '')`, key,
		event, age.Microseconds())
}

func (s *env) text(t testing.TB, query string, args ...any) (text string) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), s.SQL(query), args...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

// wantThere looks for rows by their ids.
func (s *env) wantThere(t testing.TB, table, column string, rows map[string]string, there bool) {
	t.Helper()
	for what, id := range rows {
		n := s.Count(t, "SELECT count(*) FROM {schema}."+table+" WHERE "+column+"::text = $1", id)
		if (n == 1) != there {
			t.Errorf("%s: there are %d rows", what, n)
		}
	}
}

// hold keeps a transaction open until it is ended or the test is.
func (s *env) hold(t testing.TB, statement string, args ...any) pgx.Tx {
	t.Helper()
	tx := s.Begin(t)
	if _, err := tx.Exec(t.Context(), s.SQL(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return tx
}

// logs keep what was logged.
type logs struct{ server.Output }

func (l *logs) count(part string) int { return strings.Count(l.String(), part) }
