package retention_test

import (
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/retention"
)

// TestAClockThatJumpsDeletesNothing. The clock stands; what retention remembers is moved instead.
func TestAClockThatJumpsDeletesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		const nothing, all = "published=0 discarded=0 dead=0 dedupe=0", "published=1 discarded=0 dead=1 dedupe=1"
		const rejected = nothing + " refused=published refused=dead refused=dedupe"
		s.wantWent(t, s.once(t), nothing)
		for name, c := range map[string]struct {
			jump    string // how far the memory goes back, as if the clock went ahead
			window  time.Duration
			confirm func(time.Time) time.Time
			want    string
		}{
			"an hour ahead":              {jump: "1 hour", want: all},
			"six days ahead":             {jump: "6 days", want: all},
			"eight days ahead":           {jump: "8 days", want: rejected},
			"a year ahead":               {jump: "1 year", want: rejected},
			"a year ahead, as confirmed": {jump: "1 year", confirm: func(now time.Time) time.Time { return now }, want: all},
			"a year ahead, confirmed once": {jump: "1 year", confirm: func(now time.Time) time.Time {
				return now.Add(-365 * day)
			}, want: rejected},
			"an hour back": {jump: "-1 hour", want: all},
			"a day back":   {jump: "-1 day", want: rejected},
			"a window made shorter": {
				window: 480 * time.Hour, want: "published=0 discarded=0 dead=1 dedupe=0 refused=published",
			},
			"a window made longer": {window: 960 * time.Hour, want: "published=0 discarded=0 dead=1 dedupe=0"},
		} {
			s.Exec(t, "UPDATE {schema}.outbox_events SET state = 7, published_at = NULL")
			s.Exec(t, "DELETE FROM {schema}.outbox_events")
			s.Exec(t, "DELETE FROM {schema}.outbox_dedupe")
			s.Exec(t, "DELETE FROM {schema}.outbox_dlq") // only ever resolved ones
			old := s.event(t, published, 35*day)
			s.key(t, "k", old, 35*day)
			s.act(t, "redrive", old, s.letter(t, 95*day), 95*day)
			if c.jump == "" {
				c.jump = "0"
			}
			shift := func(sign string) {
				s.Exec(t,
					"UPDATE {schema}.outbox_retention SET cut_off = cut_off "+sign+" $1::text::interval, ran_at = ran_at "+sign+
						" $1::text::interval", c.jump)
			}
			configure := func(r *retention.Config) {
				r.Published = c.window
				if c.confirm != nil {
					r.Confirmed = c.confirm(time.Now())
				}
			}
			warned := s.logs.count("retention deletes nothing")
			shift("-")
			got := s.once(t, configure)
			if went(got) != c.want {
				t.Errorf("%s: %s\nwant %s", name, went(got), c.want)
			}
			remembered := s.Count(t,
				"SELECT count(*) FROM {schema}.outbox_retention WHERE halted_at IS NOT NULL AND halt_reason "+
					"LIKE '%set Confirmed to 2%'")
			if n := s.logs.count("retention deletes nothing") - warned; n != len(got.Halted) || remembered != n {
				t.Errorf("%s: %d refusals, %d in the log and %d remembered", name, len(got.Halted), n, remembered)
			}
			// When the clock is right again it goes on by itself.
			if c.want == rejected {
				shift("+")
				if again := s.once(t); went(again) != all {
					t.Errorf("%s, and right again: %s\n%+v", name, went(again), again.Halted)
				}
			}
			s.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = NULL, ran_at = NULL")
			s.once(t) // what is remembered is right for the next one
			if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_retention WHERE cut_off IS NULL OR halted_at IS NOT "+
				"NULL OR worker IS NOT NULL"); n != 0 {
				t.Errorf("%s: %d kinds are not at rest", name, n)
			}
		}
	})
}

// TestTheGreaterPartIsNotDeletedUnasked: where there is nothing to remember, and after a long step.
func TestTheGreaterPartIsNotDeletedUnasked(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		const nothing = "published=0 discarded=0 dead=0 dedupe=0"
		s.events(t, 12_000, 31*day)
		s.events(t, 11_999, day)
		first := s.once(t)
		s.wantWent(t, first, nothing+" refused=published")
		if len(first.Halted) == 1 && !strings.Contains(first.Halted[0].Reason, "12000 rows would go and 11999 stay") {
			t.Errorf("the reason: %s", first.Halted[0].Reason)
		}
		s.wantWent(t, s.once(t), nothing+" refused=published")
		s.event(t, published, day)
		s.wantWent(t, s.once(t), "published=12000 discarded=0 dead=0 dedupe=0") // half of them is not more than half
		// After a week of silence the same: too much, until somebody says so. Hours alone explain it.
		s.Exec(t, "ALTER TABLE {schema}.outbox_events DISABLE TRIGGER outbox_events_append_only")
		s.Exec(t, "UPDATE {schema}.outbox_events SET created_at = created_at - interval '31 days', published_at = "+
			"published_at - interval '31 days'")
		s.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = cut_off - interval '6 days'")
		s.wantWent(t, s.once(t), nothing+" refused=published")
		s.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = cut_off + interval '6 days' - interval '3 hours'")
		s.wantWent(t, s.once(t), "published=12000 discarded=0 dead=0 dedupe=0")
		// Confirmed: nobody counts.
		s.events(t, 10_000, 31*day)
		s.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = NULL")
		s.wantWent(t, s.once(t), nothing+" refused=published")
		if got := s.once(t, func(c *retention.Config) { c.Confirmed = time.Now() }); got.Published != 10_000 {
			t.Errorf("confirmed: %s", went(got))
		}
	})
}

// TestKeysAreCountedToo: the greater part of them is not deleted unasked either; few are, whatever their part.
func TestKeysAreCountedToo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		keys := func(prefix string, count int) {
			s.Exec(t, `INSERT INTO {schema}.outbox_dedupe (event_id, created_at, namespace, event_type, tenant_id, dedupe_key, 
				content_hash)
				SELECT gen_random_uuid(), now() - interval '31 days', 'default', 'order_created', '', $1 || n, '' 
				FROM generate_series(1, $2) n`, prefix, count)
		}
		keys("few", 9_999)
		s.wantWent(t, s.once(t), "published=0 discarded=0 dead=0 dedupe=9999")
		s.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = NULL")
		keys("many", 10_000)
		s.wantWent(t, s.once(t), "published=0 discarded=0 dead=0 dedupe=0 refused=dedupe")
	})
}
