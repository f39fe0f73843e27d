package retention_test

import (
	"context"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/retention"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// TestSeveralAtOnceDeleteEachRowOnce: whoever comes second leaves it to the first.
func TestSeveralAtOnceDeleteEachRowOnce(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		const rows = 4_000
		s.events(t, rows, 31*day)
		var deleted, busy int64
		var mu sync.Mutex
		var all sync.WaitGroup
		for range 5 {
			runner := s.retention(t, func(c *retention.Config) { c.Batch, c.Pause = 200, 10*time.Millisecond })
			all.Go(func() {
				result, err := runner.Once(t.Context())
				mu.Lock()
				defer mu.Unlock()
				if err != nil {
					t.Error(err)
				}
				deleted += result.Published
				busy += int64(len(result.Busy))
			})
		}
		all.Wait()
		if deleted != rows || s.Count(t, "SELECT deleted FROM {schema}.outbox_retention WHERE kind = 'published'") != rows {
			t.Errorf("%d rows are counted as deleted", deleted)
		}
		if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 0 {
			t.Errorf("%d rows are left", n)
		}
		t.Logf("%d times somebody else was at it", busy)
	})
}

// TestARunThatDiedIsFollowedByAnother, also when the clock that dated it was wrong.
func TestARunThatDiedIsFollowedByAnother(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		for until, free := range map[string]bool{
			"now() + interval '1 minute'": false, "now() - interval '1 second'": true, "now() + interval '1 year'": true,
			"now() - interval '1 year'": true,
		} {
			s.event(t, published, 31*day)
			s.Exec(t, "UPDATE {schema}.outbox_retention SET worker = gen_random_uuid(), work_until = "+until)
			result, err := s.retention(t).Once(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if free != (len(result.Busy) == 0) || free != (result.Published > 0) ||
				!free && strings.Join(result.Busy, " ") != "published dead dedupe" {
				t.Errorf("until %s: %+v", until, result)
			}
		}
	})
}

// TestARunThatWasOvertakenStops: what it was about to delete when another one took over is not deleted by it.
func TestARunThatWasOvertakenStops(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 1_000, 31*day)
		s.Exec(t, `CREATE FUNCTION {schema}.overtake() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
			BEGIN UPDATE `+s.SQL("{schema}")+`.outbox_retention SET worker = gen_random_uuid() WHERE kind = 'published'; `+
			`RETURN NULL; END $$`)
		s.Exec(t, "CREATE TRIGGER overtake AFTER DELETE ON {schema}.outbox_events EXECUTE FUNCTION {schema}.overtake()")
		result, err := s.retention(t).Once(t.Context())
		if err != nil || strings.Join(result.Busy, " ") != "published" || result.Published != 0 {
			t.Errorf("%+v, %v", result, err)
		}
		if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 1_000 {
			t.Errorf("%d rows are left", n)
		}
	})
}

// TestRunGoesOnUntilItIsStopped: what becomes due later goes as well, failures do not end it, and stopping in the
// middle leaves the work free for others.
func TestRunGoesOnUntilItIsStopped(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		const pause = 500 * time.Millisecond // fifty of them are long enough to stop it in the middle on any machine
		runner := s.retention(t, func(c *retention.Config) { c.Every, c.Batch, c.Pause = time.Second, 100, pause })
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error, 1)
		go func() { done <- runner.Run(ctx) }()
		s.Exec(t, "ALTER TABLE {schema}.outbox_retention RENAME TO elsewhere")
		eventually.True(t, "a failure", func() bool { return s.logs.count("retention failed") > 0 })
		s.Exec(t, "ALTER TABLE {schema}.elsewhere RENAME TO outbox_retention")
		for range 2 {
			s.events(t, 150, 31*day)
			eventually.True(t, "an empty table", func() bool {
				return s.Count(t, "SELECT count(*) FROM {schema}.outbox_events") == 0
			})
		}
		s.events(t, 5_000, 31*day)
		eventually.True(t, "the next batch", func() bool {
			return s.Count(t, "SELECT count(*) FROM {schema}.outbox_events") < 5_000
		})
		stop()
		if err := <-done; err != nil {
			t.Errorf("Run: %v", err)
		}
		if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_retention WHERE worker IS NOT NULL"); n != 0 {
			t.Errorf("%d kinds are not free", n)
		}
		if s.Count(t, "SELECT count(*) FROM {schema}.outbox_events") == 0 {
			t.Error("it was stopped too late to show anything")
		}
	})
}
