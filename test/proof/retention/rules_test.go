package retention_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/retention"
)

// TestOnlySettledEventsGo: of every state and age, only what is published or discarded and older than the window.
// The guards of the table are off, so that it is the statement which spares the rest.
func TestOnlySettledEventsGo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		stay, gone := map[string]string{}, map[string]string{}
		for state := ready; state <= discarded; state++ {
			stay[fmt.Sprint("young, state ", state)] = s.event(t, state, 29*day)
			old := s.event(t, state, 31*day)
			if state == published || state == discarded {
				gone[fmt.Sprint("old, state ", state)] = old
			} else {
				stay[fmt.Sprint("old, state ", state)] = old
			}
		}
		for _, state := range []int{published, discarded} {
			wanted := s.event(t, state, 31*day)
			s.request(t, wanted, "")
			stay[fmt.Sprint("to be delivered again, state ", state)] = wanted
		}
		regretted := s.event(t, discarded, 90*day)
		s.act(t, "discard", regretted, "", 29*day)
		stay["discarded of late"] = regretted
		long := s.event(t, discarded, 90*day)
		s.act(t, "discard", long, "", 31*day)
		gone["discarded long ago"] = long

		s.Exec(t, "ALTER TABLE {schema}.outbox_events DISABLE TRIGGER outbox_events_keep_open")
		s.wantWent(t, s.once(t), "published=1 discarded=2 dead=0 dedupe=0")
		s.wantThere(t, "outbox_events", "id", stay, true)
		s.wantThere(t, "outbox_events", "id", gone, false)
		s.wantWent(t, s.once(t), "published=0 discarded=0 dead=0 dedupe=0")
		if n := s.Count(t, "SELECT deleted FROM {schema}.outbox_retention WHERE kind = 'published'"); n != 3 {
			t.Errorf("%d are remembered as deleted", n)
		}
	})
}

// TestDeadLettersGoLongAfterTheyWereResolved, and with them what was done about them.
func TestDeadLettersGoLongAfterTheyWereResolved(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		some := s.event(t, published, 0)
		type act struct {
			verb string
			days int // ago
		}
		resolved := func(acts ...act) string {
			letter := s.letter(t, 200*day)
			for _, a := range acts {
				s.act(t, a.verb, some, letter, time.Duration(a.days)*day)
			}
			return letter
		}
		stay := map[string]string{
			"unresolved":               resolved(),
			"skipped only":             resolved(act{"skip", 150}),
			"resolved of late":         resolved(act{"redrive", 89}),
			"resolved twice, one late": resolved(act{"redrive", 150}, act{"discard", 89}),
			"to be delivered again":    resolved(act{"redrive", 150}),
		}
		s.request(t, some, stay["to be delivered again"])
		gone := map[string]string{
			"redriven":                       resolved(act{"redrive", 91}),
			"discarded":                      resolved(act{"skip", 150}, act{"discard", 91}),
			"reissued":                       resolved(act{"reissue", 91}),
			"resolved twice, both long gone": resolved(act{"redrive", 150}, act{"discard", 91}),
		}
		s.Exec(t, "ALTER TABLE {schema}.outbox_dlq DISABLE TRIGGER outbox_dlq_keep_unresolved")
		s.wantWent(t, s.once(t), "published=0 discarded=0 dead=4 dedupe=0")
		s.wantThere(t, "outbox_dlq", "id", stay, true)
		s.wantThere(t, "outbox_dlq", "id", gone, false)
		for what, letter := range gone {
			if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_actions WHERE dlq_id = $1::text::bigint", letter); n != 0 {
				t.Errorf("%s: %d actions are left", what, n)
			}
		}
	})
}

// TestADedupeKeyHoldsUntilItsHorizon: as long as the window says, and as long as its event is there, settled or not.
func TestADedupeKeyHoldsUntilItsHorizon(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		stays := 0
		for state := ready; state <= discarded; state++ {
			s.key(t, fmt.Sprint("young ", state), s.event(t, state, day), 29*day)
			s.key(t, fmt.Sprint("old ", state), s.event(t, state, day), 31*day)
			stays += 2
		}
		gone := s.text(t, "SELECT {schema}.outbox_uuid7()::text")
		s.key(t, "young, of an event that is gone", gone, 29*day)
		stays++
		s.key(t, "of an event that is gone", gone, 31*day)
		s.key(t, "of one that goes now", s.event(t, published, 31*day), 31*day)
		emit := func() string {
			return s.text(t,
				"SELECT e.id::text FROM {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'k') e")
		}
		first := emit()
		s.Exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now() WHERE state = 0 AND dedupe_key = 'k'")
		s.wantWent(t, s.once(t), "published=1 discarded=0 dead=0 dedupe=2")
		if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_dedupe WHERE dedupe_key <> 'k'"); n != stays {
			t.Errorf("%d keys are left, want %d", n, stays)
		}
		if again := emit(); again != first {
			t.Errorf("within the horizon the key made another event: %s and %s", first, again)
		}
		// Past it, the key holds while its event is there, and then it is as good as new.
		s.Exec(t, "ALTER TABLE {schema}.outbox_dedupe DISABLE TRIGGER outbox_dedupe_append_only")
		s.Exec(t, "UPDATE {schema}.outbox_dedupe SET created_at = now() - interval '31 days' WHERE dedupe_key = 'k'")
		s.wantWent(t, s.once(t), "published=0 discarded=0 dead=0 dedupe=0")
		if again := emit(); again != first {
			t.Errorf("while its event was there the key made another one: %s and %s", first, again)
		}
		s.Exec(t, "UPDATE {schema}.outbox_events SET published_at = now() - interval '31 days' WHERE dedupe_key = 'k'")
		s.wantWent(t, s.once(t), "published=1 discarded=0 dead=0 dedupe=1")
		if again := emit(); again == first {
			t.Error("past the horizon the key still stands for the first event")
		}
	})
}

// TestAKeyThatAProducerHoldsIsPassedBy: retention does not wait for the producer, so that the producer never waits
// for a retention that waits.
func TestAKeyThatAProducerHoldsIsPassedBy(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		const emit = "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => $1)"
		for _, key := range []string{"a", "b", "c"} {
			s.Exec(t, emit, key)
		}
		s.Exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now() - interval '31 days'")
		s.Exec(t, "ALTER TABLE {schema}.outbox_dedupe DISABLE TRIGGER outbox_dedupe_append_only")
		s.Exec(t, "UPDATE {schema}.outbox_dedupe SET created_at = now() - interval '31 days'")
		producer := s.hold(t, emit, "b")
		s.wantWent(t, s.once(t), "published=3 discarded=0 dead=0 dedupe=2")
		if _, err := producer.Exec(t.Context(), s.SQL(emit), "c"); err != nil {
			t.Errorf("the producer: %v", err)
		}
		if err := producer.Commit(t.Context()); err != nil {
			t.Errorf("the producer: %v", err)
		}
		s.wantWent(t, s.once(t), "published=0 discarded=0 dead=0 dedupe=1")
	})
}

// TestNoKeyIsLookedAtBeforeItsEventCanBeGone: where events are kept longer than keys, or forever, or nobody may
// delete them, a run does not walk over all the keys that have to stay.
func TestNoKeyIsLookedAtBeforeItsEventCanBeGone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		const keys = 250
		s.Exec(t, `INSERT INTO {schema}.outbox_dedupe (event_id, created_at, namespace, event_type, tenant_id, dedupe_key, 
			content_hash)
			SELECT {schema}.outbox_uuid7(), now() - interval '50 days', 'default', 'order_created', '', n::text, '' 
			FROM generate_series(1, $1) n`, keys)
		// Their events are gone, so that every key which is looked at goes.
		for _, c := range []struct {
			name      string
			published time.Duration
			gone      int
		}{
			{"events forever, and none was ever deleted", -1, 0},
			{"events for a year", 365 * day, 0},
			{"events for 49 days", 49 * day, keys},
		} {
			s.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = NULL, ran_at = NULL")
			got := s.once(t, hundreds, func(r *retention.Config) { r.Published = c.published })
			if want := fmt.Sprintf("published=0 discarded=0 dead=0 dedupe=%d", c.gone); went(got) != want {
				t.Errorf("%s: %s\nwant %s", c.name, went(got), want)
			}
		}
	})
}

// TestDueIsWhatARunDeletes, kind by kind; it changes nothing, and says what would be refused.
func TestDueIsWhatARunDeletes(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		for state := ready; state <= discarded; state++ {
			s.event(t, state, 29*day)
			s.key(t, fmt.Sprint("old ", state), s.event(t, state, 31*day), 31*day)
		}
		regretted := s.event(t, discarded, 90*day)
		s.act(t, "discard", regretted, "", 29*day)
		s.request(t, s.event(t, discarded, 31*day), "")
		some := s.event(t, published, 0)
		for range 2 {
			s.act(t, "redrive", some, s.letter(t, 200*day), 91*day)
		}
		s.letter(t, 200*day)
		s.act(t, "discard", some, s.letter(t, 200*day), 89*day)
		s.request(t, some, s.letter(t, 200*day))
		due := func() string {
			all, err := s.retention(t).Due(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			text := ""
			for _, kind := range all {
				text += fmt.Sprintf(" %s=%d", kind.Kind, kind.Rows)
				if kind.Halted != "" {
					text += " refused=" + kind.Kind
				}
			}
			return text[1:]
		}
		// Six of the keys are of events that stay: only a run looks for them.
		if got := due(); got != "published=1 discarded=1 dead=2 dedupe=8" {
			t.Errorf("due: %s", got)
		}
		if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_retention WHERE cut_off IS NOT NULL OR ran_at IS NOT NULL "+
			"OR worker IS NOT NULL"); n != 0 {
			t.Errorf("%d kinds were changed", n)
		}
		s.wantWent(t, s.once(t), "published=1 discarded=1 dead=2 dedupe=2")
		if got := due(); got != "published=0 discarded=0 dead=0 dedupe=6" {
			t.Errorf("due after a run: %s", got)
		}
		s.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = cut_off - interval '1 year' WHERE kind = 'published'")
		if got := due(); got != "published=0 refused=published discarded=0 refused=discarded dead=0 dedupe=0" {
			t.Errorf("due after a year: %s", got)
		}
	})
}

// TestAnOpenTransactionLosesNothing: what it wrote is not there for retention yet, and what it sees stays as it was
// for it. Retention waits for neither.
func TestAnOpenTransactionLosesNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 300, 31*day)
		producer := s.hold(t, "SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}', dedupe_key => 'k')")
		reader, err := s.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reader.Rollback(t.Context()) })
		seen := func() (n int) {
			if err := reader.QueryRow(t.Context(), s.SQL("SELECT count(*) FROM {schema}.outbox_events")).Scan(&n); err != nil {
				t.Fatal(err)
			}
			return n
		}
		before := seen()
		s.wantWent(t, s.once(t, func(c *retention.Config) { c.Batch = 100 }), "published=300 discarded=0 dead=0 dedupe=0")
		if after := seen(); before != 300 || after != before {
			t.Errorf("a snapshot saw %d events, then %d", before, after)
		}
		if err := producer.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantWent(t, s.once(t), "published=0 discarded=0 dead=0 dedupe=0")
		if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_events e JOIN {schema}.outbox_dedupe k ON k.event_id = "+
			"e.id WHERE e.state = 0"); n != 1 {
			t.Errorf("of the late event there are %d", n)
		}
	})
}

// TestWhatIsKeptForEver: a negative window deletes nothing of its kind.
func TestWhatIsKeptForEver(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		old := s.event(t, published, 999*day)
		s.key(t, "k", old, 999*day)
		s.act(t, "redrive", old, s.letter(t, 999*day), 999*day)
		for _, c := range []struct{ published, dead, dedupe time.Duration }{
			{-1, -1, -1}, {0, -1, -1}, {-1, 0, -1}, {-1, -1, 0},
		} {
			got := s.once(t, func(r *retention.Config) { r.Published, r.Dead, r.Dedupe = c.published, c.dead, c.dedupe })
			s.wantWent(t, got, fmt.Sprintf("published=%d discarded=0 dead=%d dedupe=%d", 1+c.published, 1+c.dead, 1+c.dedupe))
		}
	})
}
