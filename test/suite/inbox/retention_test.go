package inbox_test

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/stdlib"
	_ "github.com/lib/pq" // the driver "postgres"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// newRetention is one that does not rest, with what the test changes of it.
func newRetention(t testing.TB, db *pgtest.DB, config inbox.RetentionConfig) *inbox.Retention {
	t.Helper()
	config.Schema = db.Schema
	config.Pause = -1
	if config.Logger == nil {
		config.Logger = slog.New(slog.DiscardHandler)
	}
	retention, err := inbox.NewRetention(pgtest.OpenSQL(t, "pgx", db.URL), config)
	if err != nil {
		t.Fatal(err)
	}
	return retention
}

// once runs it and wants so many rows to go, and a refusal with these words, or none.
func once(t testing.TB, retention *inbox.Retention, deleted int64, rejected string) inbox.RetentionResult {
	t.Helper()
	result, err := retention.Once(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if result.Deleted != deleted || !strings.Contains(result.Halted, rejected) ||
		(rejected == "") != (result.Halted == "") {
		t.Errorf("got %+v, want %d deleted and %q refused", result, deleted, rejected)
	}
	return result
}

// fill writes n marks, each an hour older than the one before, beginning with this age.
func fill(t testing.TB, db *pgtest.DB, n int, age time.Duration) {
	t.Helper()
	db.Exec(t, `INSERT INTO {schema}.inbox_handled (handled_at, event_id, consumer)
		SELECT now() - $1 * interval '1 second' - i * interval '1 hour', gen_random_uuid(), 'mailer' 
		FROM generate_series(0, $2 - 1) i`, int(age.Seconds()), n)
}

// awayFromMidnight waits for the next day if that is near: what counts days counts another one then.
func awayFromMidnight(t testing.TB) {
	t.Helper()
	if left := time.Until(time.Now().UTC().Truncate(24 * time.Hour).Add(24 * time.Hour)); left < eventually.Patience {
		t.Logf("waiting %s for midnight", left)
		<-time.After(left + time.Second)
	}
}

// TestFaultI15RetentionForgetsTheOld, and nothing that is younger than it must be.
func TestFaultI15RetentionForgetsTheOld(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		awayFromMidnight(t)
		fill(t, db, 2000, 30*time.Minute) // 83 days
		db.Exec(t, `INSERT INTO {schema}.inbox_newest (seq, applied_on, consumer, namespace, aggregate_type, aggregate_id)
			SELECT 1, (now() AT TIME ZONE 'UTC')::date - i, 'mailer', 'default', 'order', i::text FROM generate_series(0, 59) i`)
		// 720 hours are 30 days: the aggregates of the last 30 and of today stay.
		result := once(t, newRetention(t, db, inbox.RetentionConfig{Batch: 100}), 1280+29, "")
		if result.Batches < 13 {
			t.Errorf("%d batches for %d rows, 100 at most each", result.Batches, result.Deleted)
		}
		for what, query := range map[string]string{
			"an old mark": "SELECT count(*) FROM {schema}.inbox_handled WHERE handled_at < now() - interval '720 hours'",
			"a missing mark": "SELECT 720 - count(*) FROM {schema}.inbox_handled WHERE handled_at >= now() - interval '720 " +
				"hours'",
			"an old aggregate": "SELECT count(*) FROM {schema}.inbox_newest WHERE applied_on < (now() AT TIME ZONE " +
				"'UTC')::date - 30",
			"a missing aggregate": "SELECT 31 - count(*) FROM {schema}.inbox_newest",
			"a wrong memory": "SELECT count(*) FROM {schema}.inbox_retention WHERE deleted <> 1309 OR place <> " +
				"'-infinity' OR halted_at IS NOT NULL OR cut_off IS NULL",
		} {
			if n := db.Count(t, query); n != 0 {
				t.Errorf("%s: %d", what, n)
			}
		}
		once(t, newRetention(t, db, inbox.RetentionConfig{}), 0, "")
	})
}

// TestRetentionDoesNotBelieveEveryClock: the memory of the last run stands for a clock that jumped since.
func TestRetentionDoesNotBelieveEveryClock(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		retention := newRetention(t, db, inbox.RetentionConfig{})
		fill(t, db, 721, 30*time.Minute) // one is due
		once(t, retention, 1, "")
		right := "UPDATE {schema}.inbox_retention SET cut_off = now() - interval '720 hours', ran_at = now()"

		// Ahead by more than a step: everything would seem old.
		db.Exec(t, "UPDATE {schema}.inbox_retention SET cut_off = now() - interval '720 hours' - interval '169 hours', "+
			"ran_at = now() - interval '169 hours'")
		fill(t, db, 50, 730*time.Hour)
		rejected := once(t, retention, 0, "the clock went ahead")
		if n := db.Count(t, "SELECT count(*) FROM {schema}.inbox_retention WHERE halted_at IS NOT NULL AND halt_reason = $1",
			rejected.Halted); n != 1 {
			t.Error("the refusal is not written down")
		}
		// It names what to set, and that is enough.
		_, at, _ := strings.Cut(rejected.Halted, "set confirmed to ")
		confirmed, err := time.Parse("2006-01-02 15:04:05Z07", at)
		if err != nil {
			t.Fatalf("%q: %v", rejected.Halted, err)
		}
		once(t, newRetention(t, db, inbox.RetentionConfig{Confirmed: confirmed}), 50, "")

		// Back by hours.
		db.Exec(t, "UPDATE {schema}.inbox_retention SET ran_at = now() + interval '5 hours'")
		fill(t, db, 50, 730*time.Hour)
		once(t, retention, 0, "it went back")
		db.Exec(t, right) // the clock is right again, and it goes on by itself
		once(t, retention, 50, "")
		if n := db.Count(t,
			"SELECT count(*) FROM {schema}.inbox_retention WHERE halted_at IS NULL AND halt_reason = ''"); n != 1 {
			t.Error("the refusal still stands")
		}

		// The greater part, after more than a few runs.
		db.Exec(t, "UPDATE {schema}.inbox_retention SET cut_off = now() - interval '720 hours' - interval '5 hours'")
		db.Exec(t, `INSERT INTO {schema}.inbox_handled (handled_at, event_id, consumer) SELECT now() - interval '721 `+
			`hours', gen_random_uuid(), 'mailer' FROM generate_series(1, 10000)`)
		once(t, retention, 0, "10000 rows would go and 720 stay")
		db.Exec(t, right)
		once(t, retention, 10000, "")
	})
}

// TestAFirstRunCounts: nobody has deleted for long, and most of it is old.
func TestAFirstRunCounts(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, `INSERT INTO {schema}.inbox_handled (handled_at, event_id, consumer) SELECT now() - interval '721 `+
			`hours', gen_random_uuid(), 'mailer' FROM generate_series(1, 10000)`)
		retention := newRetention(t, db, inbox.RetentionConfig{})
		once(t, retention, 0, "the greater part")
		db.Exec(t, `INSERT INTO {schema}.inbox_handled (event_id, consumer) SELECT gen_random_uuid(), 'mailer' FROM `+
			`generate_series(1, 10000)`)
		once(t, retention, 10000, "")
	})
}

// TestRetentionTakesTurns: whoever finds another at it has nothing to do, and an aggregate that is in somebody's hands
// is passed by.
func TestRetentionTakesTurns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		fill(t, db, 300, 1000*time.Hour)
		db.Exec(t, `INSERT INTO {schema}.inbox_newest (seq, applied_on, consumer, namespace, aggregate_type, aggregate_id) `+
			`VALUES (1, '2020-01-01', 'mailer', 'default', 'order', '1'), (1, '2020-01-01', 'mailer', 'default', 'order', '2')`)
		retention := newRetention(t, db, inbox.RetentionConfig{})
		tx := db.Begin(t)
		if _, err := tx.Exec(t.Context(), db.SQL("SELECT FROM {schema}.inbox_retention FOR UPDATE")); err != nil {
			t.Fatal(err)
		}
		once(t, retention, 0, "")
		_ = tx.Rollback(t.Context())

		tx = db.Begin(t)
		if _, err := tx.Exec(t.Context(),
			db.SQL("SELECT {schema}.inbox_newer('mailer', 'default', 'order', '1', 2)")); err != nil {
			t.Fatal(err)
		}
		once(t, retention, 301, "")
		commit(t, tx)

		fill(t, db, 2000, 1000*time.Hour)
		var group sync.WaitGroup
		for range 4 {
			other := newRetention(t, db, inbox.RetentionConfig{Batch: 100})
			group.Go(func() {
				if _, err := other.Once(t.Context()); err != nil {
					t.Error(err)
				}
			})
		}
		group.Wait()
		once(t, retention, int64(db.Count(t, "SELECT count(*) FROM {schema}.inbox_handled")), "")
		if n := db.Count(t, "SELECT deleted FROM {schema}.inbox_retention"); n != 2301 {
			t.Errorf("%d rows are counted as deleted, want 2301", n)
		}
	})
}

// TestRetentionOverAnyDriver of database/sql, and over a pgx pool.
func TestRetentionOverAnyDriver(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		pooled := stdlib.OpenDBFromPool(db.Pool)
		t.Cleanup(func() { _ = pooled.Close() })
		for name, handle := range map[string]inbox.RetentionDB{
			"pgx":             pgtest.OpenSQL(t, "pgx", db.URL),
			"simple_protocol": pgtest.OpenSQL(t, "pgx", db.URL+"&default_query_exec_mode=simple_protocol"),
			"pq":              pgtest.OpenSQL(t, "postgres", db.URL),
			"pool":            pooled,
		} {
			fill(t, db, 10, 1000*time.Hour)
			retention, err := inbox.NewRetention(handle, inbox.RetentionConfig{
				Schema: db.Schema, Confirmed: time.Now().Add(-700 * time.Hour),
			})
			if err != nil {
				t.Fatal(err)
			}
			t.Log(name)
			once(t, retention, 10, "")
		}
	})
}

// TestRetentionRuns until it is told to stop, and says what it did.
func TestRetentionRuns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		fill(t, db, 10, 1000*time.Hour)
		said := &lines{found: make(chan struct{}), want: "rows=10"}
		retention := newRetention(t, db, inbox.RetentionConfig{
			Every: time.Second, Logger: slog.New(slog.NewTextHandler(said, nil)),
		})
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan error, 1)
		go func() { ended <- retention.Run(ctx) }()
		select {
		case <-said.found:
		case <-time.After(eventually.Patience):
			t.Errorf("nothing was deleted: %s", said)
		}
		cancel()
		if err := eventually.Receive(t, "retention has stopped", ended); err != nil {
			t.Error(err)
		}
	})
}

// lines is a log that says when it has what is wanted.
type lines struct {
	mu    sync.Mutex
	text  bytes.Buffer
	want  string
	once  sync.Once
	found chan struct{}
}

func (l *lines) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *lines) Write(text []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.text.Write(text)
	if strings.Contains(l.text.String(), l.want) {
		l.once.Do(func() { close(l.found) })
	}
	return len(text), nil
}

// TestRetentionSettings: what is refused, and by what words, in Go and in SQL.
func TestRetentionSettings(t *testing.T) {
	t.Parallel()
	for want, config := range map[string]inbox.RetentionConfig{
		"Keep: 167h0m0s, must be at least Horizon (168h0m0s)": {Keep: 167 * time.Hour},
		// The horizon is the outbox's 720 hours and the broker's 168.
		"Keep: 720h0m0s, must be at least Horizon (888h0m0s)": {Horizon: 888 * time.Hour},
		"Horizon: 1s":     {Horizon: time.Second},
		"Every: 1ms":      {Every: time.Millisecond},
		"Batch: 99":       {Batch: 99},
		"Batch: 5001":     {Batch: 5001},
		"MaxStep: 4h0m0s": {MaxStep: 4 * time.Hour},
	} {
		if _, err := inbox.NewRetention(nil, config); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("got %v, want %s", err, want)
		}
	}
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		for _, given := range []string{
			"keep => '167 hours'", "keep => NULL", "horizon => '721 hours'", "keep => '59 seconds', horizon => '59 seconds'",
			"horizon => NULL",
			"batch => 99", "batch => 5001", "batch => NULL", "max_step => '4 hours'", "max_step => NULL",
		} {
			_, err := db.Pool.Exec(t.Context(), db.SQL("SELECT {schema}.inbox_clean("+given+")"))
			if pgtest.SQLState(err) != "22023" {
				t.Errorf("%s: got %v, want a refusal", given, err)
			}
		}
		// A caller's own ways to write times do not matter.
		tx := db.Begin(t)
		for _, statement := range []string{
			"SET LOCAL datestyle = 'German'", "SET LOCAL intervalstyle = 'iso_8601'", "SET LOCAL timezone = 'Asia/Kathmandu'",
			"UPDATE {schema}.inbox_retention SET cut_off = '2020-01-01 UTC', ran_at = '2020-01-31 UTC'",
		} {
			if _, err := tx.Exec(t.Context(), db.SQL(statement)); err != nil {
				t.Fatal(err)
			}
		}
		var rejection string
		if err := tx.QueryRow(t.Context(),
			db.SQL("SELECT halt_reason FROM {schema}.inbox_clean()")).Scan(&rejection); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(rejection, "from 2020-01-01 00:00:00+00 to ") ||
			!strings.Contains(rejection, "168:00:00 is the most") {
			t.Error(rejection)
		}
	})
}

// TestErrorsSayWhatToDo: without tables, without rights, on a standby.
func TestErrorsSayWhatToDo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		stranger := newRole(t, db, "")
		for _, test := range []struct {
			config inbox.RetentionConfig
			url    string
			want   string
		}{
			{inbox.RetentionConfig{Schema: "no_such_schema"}, db.URL, "run 'outboxctl migrate up --inbox'"},
			{
				inbox.RetentionConfig{Schema: db.Schema},
				pgtest.As(t, db.URL, stranger),
				"run 'outboxctl grant --inbox janitor ROLE'",
			},
			{inbox.RetentionConfig{Schema: db.Schema}, db.URL + "&default_transaction_read_only=on", "connect to the primary"},
		} {
			retention, err := inbox.NewRetention(pgtest.OpenSQL(t, "pgx", test.url), test.config)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := retention.Once(t.Context()); err == nil || !strings.Contains(err.Error(), test.want) {
				t.Errorf("got %v, want %q", err, test.want)
			}
		}
	})
}
