package minutes_test

import (
	"context"
	"log/slog"
	"os"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/relay/internal/minutes"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

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
		Counter: counter, Schema: schema, Every: time.Hour, Waiting: func() map[string]minutes.Waiting { return nil },
		Logger: slog.New(slog.DiscardHandler),
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
