package retention_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/relay/retention"
)

// pruned is what retention says that it deleted: each range, and how many events went there.
func (s *env) pruned(t testing.TB) string {
	t.Helper()
	return s.text(t, `SELECT coalesce(string_agg(first_seq || '-' || last_seq || ':' || events, ' '
			ORDER BY first_seq), '')
		FROM {schema}.outbox_pruned`)
}

// TestTheNumbersThatWentAreWrittenDown: what stays divides them, what goes later joins them, and numbers that nobody
// has are in between.
func TestTheNumbersThatWentAreWrittenDown(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		want := func(why, ranges string) {
			t.Helper()
			if got := s.pruned(t); got != ranges {
				t.Errorf("%s: %q, want %q", why, got, ranges)
			}
		}
		want("nothing went", "")
		all := func(c *retention.Config) { c.Published = 30 * day }
		for range 3 {
			s.event(t, published, 40*day) // 1 to 3
		}
		open := s.event(t, ready, 40*day) // 4
		s.event(t, published, 40*day)     // 5
		s.Exec(t, "SELECT nextval('{schema}.outbox_events_seq_seq') FROM generate_series(6, 9)")
		s.event(t, discarded, 40*day) // 10
		young := s.event(t, published, day)
		s.once(t, all)
		want("one stays", "1-3:3 5-10:2")
		s.once(t, all)
		want("a run that finds nothing", "1-3:3 5-10:2")
		s.Exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now() - interval '31 days' WHERE id = $1",
			open)
		s.nextRound(t)
		s.once(t, all)
		want("it went", "1-10:6")
		s.event(t, published, 40*day) // 12, behind the young one
		s.nextRound(t)
		s.once(t, all)
		want("behind one that stays", "1-10:6 12-12:1")
		s.Exec(t, "UPDATE {schema}.outbox_events SET published_at = now() - interval '31 days' WHERE id = $1", young)
		s.nextRound(t)
		s.once(t, all)
		want("all went", "1-12:8")
	})
}

// TestManyRangesBecomeOne: several batches, and a row between every two that go.
func TestManyRangesBecomeOne(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 2_000, 40*day)
		s.Exec(t, "UPDATE {schema}.outbox_events SET published_at = now() WHERE seq % 2 = 0")
		s.once(t, hundreds)
		if got := s.text(t, `SELECT count(*) || ' ranges, ' || sum(events) || ' events, ' || sum(last_seq - first_seq + 1)
			FROM {schema}.outbox_pruned`); got != "1000 ranges, 1000 events, 1000" {
			t.Error(got)
		}
		s.Exec(t, "UPDATE {schema}.outbox_events SET published_at = now() - interval '40 days'")
		s.nextRound(t)
		s.once(t, hundreds)
		if got := s.pruned(t); got != "1-2000:2000" {
			t.Errorf("%.200s", got)
		}
	})
}
