package minutes_test

import (
	"bytes"
	"context"
	"log/slog"
	"net/url"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/relay/internal/minutes"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// An env is an outbox, a role without rights, and a writer with a clock that is set by hand.
type env struct {
	t      *testing.T
	admin  *pgxpool.Pool
	pool   *pgxpool.Pool // of the role
	role   string
	schema string
	writer *minutes.Writer

	mutex sync.Mutex
	at    time.Time
	log   bytes.Buffer
}

func newEnv(t *testing.T) *env {
	t.Helper()
	address := "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable"
	if given := os.Getenv("SERVICES_POSTGRES18_URL"); given != "" {
		address = given
	}
	e := &env{t: t, at: time.Now().Truncate(time.Minute)}
	e.admin, e.schema = relaytest.Database(t, address)
	e.role = "minutes_" + e.schema
	e.exec("CREATE ROLE " + e.role + " LOGIN")
	t.Cleanup(func() { // before the schema and the pool go
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := e.admin.Exec(context.Background(), statement+e.role); err != nil {
				t.Error(err)
			}
		}
	})
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	parsed.User = url.User(e.role)
	if e.pool, err = pgxpool.New(t.Context(), parsed.String()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.pool.Close)
	e.writer = &minutes.Writer{
		Counter: minutes.NewCounter(e.now), Schema: e.schema, Every: time.Millisecond,
		Waiting: func(time.Time) (map[string]minutes.Waiting, bool) { return nil, false },
		Logger:  slog.New(slog.NewTextHandler(&e.log, nil)),
	}
	return e
}

func (e *env) now() time.Time {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	return e.at
}

// minute has something happen, and ends the minute.
func (e *env) minute() {
	e.writer.Counter.Arrived("orders")
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.at = e.at.Add(time.Minute)
}

func (e *env) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{e.schema}.Sanitize())
}

func (e *env) exec(statement string, args ...any) {
	e.t.Helper()
	if _, err := e.admin.Exec(e.t.Context(), e.sql(statement), args...); err != nil {
		e.t.Fatalf("%s: %v", statement, err)
	}
}

func (e *env) count(where string) (n int) {
	e.t.Helper()
	if err := e.admin.QueryRow(e.t.Context(),
		e.sql("SELECT count(*) FROM {schema}.outbox_minutes WHERE "+where)).Scan(&n); err != nil {
		e.t.Fatal(err)
	}
	return n
}

// TestAGrantCuresTheWriter: a role that may not write says so once, tries again, and loses no minute.
func TestAGrantCuresTheWriter(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	for range 3 {
		e.minute()
		e.writer.Write(t.Context(), e.pool)
	}
	if said := strings.Count(e.log.String(), "grant it relay once more"); said != 1 {
		t.Errorf("said %d times: %s", said, e.log.String())
	}
	e.exec("SELECT {schema}.outbox_grant('relay', $1)", e.role)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		e.writer.Run(ctx, e.pool)
	}()
	e.minute() // it tries again every minute
	for ctx.Err() == nil && e.count("arrived = 1 AND pending IS NULL AND oldest IS NULL") < 4 {
		select {
		case <-ended:
			t.Fatal("it gave up")
		case <-time.After(10 * time.Millisecond):
		}
	}
	stop()
	<-ended
}

// TestOldMinutesAllGo: also where far more are old than are written.
func TestOldMinutesAllGo(t *testing.T) {
	t.Parallel()
	e := newEnv(t)
	e.exec("SELECT {schema}.outbox_grant('relay', $1)", e.role)
	e.exec(`INSERT INTO {schema}.outbox_minutes
		SELECT now() - interval '71 hours' - i * interval '1 minute', 'topic ' || t, gen_random_uuid(), 1, 1, 0, 0, 0, 0, 0,
			array_fill(0::bigint, '{16}'), 0, 0
		FROM generate_series(0, 1200) i CROSS JOIN generate_series(1, 10) t`)
	e.minute()
	e.writer.Write(t.Context(), e.pool)
	old, kept := e.count("minute < now() - interval '72 hours'"), e.count("minute > now() - interval '72 hours'")
	if old > 0 || kept < 500 {
		t.Errorf("%d old ones are left, and %d others: %s", old, kept, e.log.String())
	}
}

// TestWhatIsOldGoes: rows stay for 72 hours, and go with the next that are written.
func TestWhatIsOldGoes(t *testing.T) {
	t.Parallel()
	for name, address := range map[string]string{
		"SERVICES_POSTGRES18_URL": "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable",
		"SERVICES_POSTGRES15_URL": "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if given := os.Getenv(name); given != "" {
				address = given
			}
			pool, schema := relaytest.Database(t, address)
			table := pgx.Identifier{schema, "outbox_minutes"}.Sanitize()
			for _, age := range []string{"71 hours", "73 hours"} {
				if _, err := pool.Exec(t.Context(), `INSERT INTO `+table+` SELECT now() - $1::text::interval, $1,
					gen_random_uuid(), 1, 1, 0, 0, 0, 0, 0, array_fill(0::bigint, '{16}'), 0, 0`, age); err != nil {
					t.Fatal(err)
				}
			}
			counter := minutes.NewCounter(time.Now)
			write(t, pool, schema, counter)
			if got := topics(t, pool, table); got != "73 hours,71 hours" {
				t.Errorf("after a relay that did nothing there is %s", got)
			}
			counter.Arrived("orders")
			write(t, pool, schema, counter)
			if got := topics(t, pool, table); got != "71 hours,orders" {
				t.Errorf("what is kept is %s", got)
			}
		})
	}
}

// write runs a writer that has ended, so that it writes what there is.
func write(t *testing.T, pool *pgxpool.Pool, schema string, counter *minutes.Counter) {
	t.Helper()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	writer := &minutes.Writer{
		Counter: counter, Schema: schema, Every: time.Hour,
		Waiting: func(time.Time) (map[string]minutes.Waiting, bool) { return nil, false },
		Logger:  slog.New(slog.DiscardHandler),
	}
	writer.Run(ended, pool)
}

func topics(t *testing.T, pool *pgxpool.Pool, table string) (list string) {
	t.Helper()
	if err := pool.QueryRow(t.Context(), "SELECT coalesce(string_agg(topic, ',' ORDER BY minute), '') FROM "+table).
		Scan(&list); err != nil {
		t.Fatal(err)
	}
	return list
}
