package retention_test

import (
	"bytes"
	"context"
	"fmt"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/calm"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

func TestMain(m *testing.M) { os.Exit(calm.Run(m)) }

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

// A shelf is an outbox with old things in it, and a role that may do what retention needs and no more.
type shelf struct {
	*pgtest.DB
	role    string
	janitor *pgxpool.Pool
	logs    *logs
}

func onEach(t *testing.T, test func(t *testing.T, s *shelf)) {
	t.Helper()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		role := newRole(t, db)
		db.Exec(t, "SELECT {schema}.outbox_grant('janitor', $1)", role)
		test(t, &shelf{DB: db, role: role, janitor: asRole(t, db, role), logs: &logs{}})
	})
}

// newRole makes a role that can log in and nothing else.
func newRole(t testing.TB, db *pgtest.DB) string {
	t.Helper()
	role := pgtest.NewName("janitor")
	db.Exec(t, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + role, "DROP ROLE " + role} {
			if _, err := db.Pool.Exec(context.Background(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	return role
}

func asRole(t testing.TB, db *pgtest.DB, role string) *pgxpool.Pool {
	t.Helper()
	return db.Open(t, urlOf(t, db, role), "search_path", "")
}

func urlOf(t testing.TB, db *pgtest.DB, role string) string {
	t.Helper()
	address, err := url.Parse(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(role)
	return address.String()
}

// retention is one as the janitor, without pauses.
func (s *shelf) retention(t testing.TB, change ...func(*relay.RetentionConfig)) *relay.Retention {
	t.Helper()
	config := relay.RetentionConfig{Schema: s.Schema, Pause: -1, Logger: slog.New(slog.NewTextHandler(s.logs, nil))}
	for _, change := range change {
		change(&config)
	}
	made, err := relay.NewRetention(s.janitor, config)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func (s *shelf) once(t testing.TB, change ...func(*relay.RetentionConfig)) relay.RetentionResult {
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
func went(r relay.RetentionResult) string {
	text := fmt.Sprintf("published=%d discarded=%d dead=%d dedupe=%d", r.Published, r.Discarded, r.Dead, r.Dedupe)
	for _, refusal := range r.Refused {
		text += " refused=" + refusal.Kind
	}
	return text
}

func (s *shelf) wantWent(t testing.TB, got relay.RetentionResult, want string) {
	t.Helper()
	if went(got) != want {
		t.Errorf("%s\nwant %s\n%+v", went(got), want, got.Refused)
	}
}

// event is one that was created and, where it was, published so long ago.
func (s *shelf) event(t testing.TB, state int, age time.Duration) string {
	t.Helper()
	return s.text(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, created_at, published_at, next_attempt_at)
		SELECT id, 'order_created', 'order', '1', ('{"eventId":"' || id || '"}')::json, $1::smallint, at, CASE WHEN $1 = 6 THEN at END, CASE WHEN $1 = 1 THEN at END
		  FROM (SELECT {schema}.outbox_uuid7() AS id, now() - $2::bigint * interval '1 microsecond' AS at OFFSET 0) e RETURNING id::text`, state, age.Microseconds())
}

// events makes many published ones, whose ages are a second apart.
func (s *shelf) events(t testing.TB, count int, age time.Duration) {
	t.Helper()
	s.Exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, published_at)
		SELECT id, 'order_created', 'order', n::text, ('{"eventId":"' || id || '"}')::json, 6, now() - $2::bigint * interval '1 microsecond' - n * interval '1 second'
		  FROM (SELECT {schema}.outbox_uuid7() AS id, n FROM generate_series(1, $1) n OFFSET 0) e`, count, age.Microseconds())
}

// letter is a dead letter that was written so long ago.
func (s *shelf) letter(t testing.TB, age time.Duration) string {
	t.Helper()
	return s.text(t, `INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, failed_at, attempts, blocking, namespace, event_type, aggregate_type, aggregate_id, error_reason, payload_json)
		SELECT 1, {schema}.outbox_uuid7(), at, at, 10, true, 'default', 'order_created', 'order', '1', 'max_attempts', '{}'
		  FROM (SELECT now() - $1::bigint * interval '1 microsecond' AS at) a RETURNING id::text`, age.Microseconds())
}

// act writes an action about an event, and about a dead letter if one is given. Answers the action's id.
func (s *shelf) act(t testing.TB, verb, event, letter string, age time.Duration) string {
	t.Helper()
	return s.text(t, `INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor, acted_at)
		VALUES (gen_random_uuid(), $1, $2::text::uuid, nullif($3, '')::text::bigint, 'ada', now() - $4::bigint * interval '1 microsecond') RETURNING action_id::text`,
		verb, event, letter, age.Microseconds())
}

// request asks for a published event once more.
func (s *shelf) request(t testing.TB, event, letter string) {
	t.Helper()
	s.Exec(t, "INSERT INTO {schema}.outbox_requests (action_id, event_id, event_seq, layout, lane) VALUES ($1::text::uuid, $2::text::uuid, 1, 1, 1)",
		s.act(t, "redeliver", event, letter, 0), event)
}

// key is a dedupe key of so long ago.
func (s *shelf) key(t testing.TB, key, event string, age time.Duration) {
	t.Helper()
	s.Exec(t, `INSERT INTO {schema}.outbox_dedupe (event_id, created_at, namespace, event_type, tenant_id, dedupe_key, content_hash)
		VALUES ($2::text::uuid, now() - $3::bigint * interval '1 microsecond', 'default', 'order_created', '', $1, '')`, key, event, age.Microseconds())
}

func (s *shelf) text(t testing.TB, query string, args ...any) (text string) {
	t.Helper()
	if err := s.Pool.QueryRow(t.Context(), s.SQL(query), args...).Scan(&text); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return text
}

// wantThere looks for rows by their ids.
func (s *shelf) wantThere(t testing.TB, table, column string, rows map[string]string, there bool) {
	t.Helper()
	for what, id := range rows {
		n := s.Count(t, "SELECT count(*) FROM {schema}."+table+" WHERE "+column+"::text = $1", id)
		if (n == 1) != there {
			t.Errorf("%s: there are %d rows", what, n)
		}
	}
}

// hold keeps a transaction open until it is ended or the test is.
func (s *shelf) hold(t testing.TB, statement string, args ...any) pgx.Tx {
	t.Helper()
	tx := s.Begin(t)
	if _, err := tx.Exec(t.Context(), s.SQL(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
	return tx
}

// logs keep what was logged.
type logs struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logs) Write(line []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(line)
}

func (l *logs) count(part string) int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return strings.Count(l.text.String(), part)
}
