package retention_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/retention"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

func hundreds(c *retention.Config) { c.Batch = 100 }

// noteStatements notes how many rows each statement deletes.
func (s *env) noteStatements(t testing.TB) {
	t.Helper()
	s.Exec(t, "CREATE TABLE {schema}.statements (rows int)")
	s.Exec(t, `CREATE FUNCTION {schema}.note() RETURNS trigger LANGUAGE plpgsql SECURITY DEFINER AS $$
		BEGIN INSERT INTO `+s.SQL("{schema}")+`.statements SELECT count(*) FROM gone; RETURN NULL; END $$`)
	s.Exec(t, "CREATE TRIGGER note AFTER DELETE ON {schema}.outbox_events REFERENCING OLD TABLE AS gone EXECUTE "+
		"FUNCTION {schema}.note()")
}

// TestBatchesAreSmall: no statement deletes more rows than it may, and all of them together delete everything.
func TestBatchesAreSmall(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 950, 31*day)
		s.noteStatements(t)
		var heard []int64
		result := s.once(t, hundreds, func(c *retention.Config) {
			c.Progress = func(r retention.Result) { heard = append(heard, r.Published) }
		})
		s.wantWent(t, result, "published=950 discarded=0 dead=0 dedupe=0")
		if fmt.Sprint(heard) != "[100 200 300 400 500 600 700 800 900 950]" {
			t.Errorf("it told %v", heard)
		}
		if n := s.Count(t, "SELECT max(rows) FROM {schema}.statements"); n > 100 {
			t.Errorf("a statement deleted %d rows", n)
		}
		if result.Batches != 10 || result.Slowest <= 0 {
			t.Errorf("%d batches, the slowest took %s", result.Batches, result.Slowest)
		}
	})
}

// TestWhatMustStayHoldsUpNobody: more than a batch of rows that must stay, before the others. What need not stay any
// more goes within a day.
func TestWhatMustStayHoldsUpNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 250, 50*day)
		s.Exec(t, `WITH a AS (INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, actor)
				SELECT gen_random_uuid(), 'redeliver', id, 'ada' FROM {schema}.outbox_events RETURNING action_id, event_id)
			INSERT INTO {schema}.outbox_requests (action_id, event_id, event_seq, lane)
			SELECT action_id, event_id, 1, 1 FROM a`)
		s.events(t, 130, 31*day)
		s.wantWent(t, s.once(t, hundreds), "published=130 discarded=0 dead=0 dedupe=0")
		s.Exec(t, "UPDATE {schema}.outbox_requests SET delivered_at = now()")
		s.wantWent(t, s.once(t, hundreds), "published=0 discarded=0 dead=0 dedupe=0")
		s.nextRound(t)
		s.wantWent(t, s.once(t, hundreds), "published=250 discarded=0 dead=0 dedupe=0")
		// The same of discarded events and dead letters.
		for range 120 {
			s.letter(t, 200*day)
		}
		s.act(t, "redrive", s.event(t, published, 0), s.letter(t, 200*day), 200*day)
		for range 120 {
			s.act(t, "discard", s.event(t, discarded, 31*day), "", day)
		}
		s.event(t, discarded, 31*day)
		s.wantWent(t, s.once(t, hundreds), "published=0 discarded=1 dead=1 dedupe=0")
	})
}

// TestALockedRowIsNotWaitedForLong: the kind is left for the next run, with an error, and the others are not.
func TestALockedRowIsNotWaitedForLong(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		id := s.event(t, published, 31*day)
		s.key(t, "of the locked one", id, 31*day)
		s.key(t, "of one that is gone", s.text(t, "SELECT {schema}.outbox_uuid7()::text"), 31*day)
		operator := s.hold(t, "SELECT FROM {schema}.outbox_events WHERE id = $1::text::uuid FOR NO KEY UPDATE", id)
		result, err := s.retention(t).Once(t.Context())
		if err == nil || !strings.Contains(err.Error(), "retention of published: delete: ") ||
			!strings.Contains(err.Error(), "55P03") {
			t.Errorf("the error is %v", err)
		}
		s.wantWent(t, result, "published=0 discarded=0 dead=0 dedupe=1")
		if err := operator.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		s.wantWent(t, s.once(t), "published=1 discarded=0 dead=0 dedupe=1")
	})
}

// TestASlowServerGetsSmallerBatches, and a statement that takes too long is given up and tried with fewer rows.
func TestASlowServerGetsSmallerBatches(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 900, 31*day)
		// A statement takes a while; one of more than 500 rows takes more than five seconds, which is the most.
		s.Exec(t, `CREATE FUNCTION {schema}.slowly() RETURNS trigger LANGUAGE plpgsql AS $$
			DECLARE row int := 1 + coalesce(nullif(current_setting('shelf.row', true), ''), '0')::int;
			BEGIN
				PERFORM set_config('shelf.row', row::text, true), pg_sleep(CASE row WHEN 1 THEN 0.2 WHEN 501 THEN 60 ELSE 0 END);
				RETURN OLD;
			END $$`)
		s.Exec(t,
			"CREATE TRIGGER slowly BEFORE DELETE ON {schema}.outbox_events FOR EACH ROW EXECUTE FUNCTION {schema}.slowly()")
		s.noteStatements(t)
		result := s.once(t)
		s.wantWent(t, result, "published=900 discarded=0 dead=0 dedupe=0")
		// What was given up is not noted: its transaction was rolled back.
		if n := s.Count(t, "SELECT max(rows) FROM {schema}.statements"); n > 500 || result.Batches < 4 {
			t.Errorf("%d batches, and one of %d rows", result.Batches, n)
		}
	})
}

// TestWithoutGrantsItSaysWhatToDo.
func TestWithoutGrantsItSaysWhatToDo(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		role := pgtest.NewRole(t, s.Server, "janitor")
		s.Exec(t, "SELECT {schema}.outbox_grant('relay', $1)", role)
		s.janitor = asRole(t, s.DB, role)
		if _, err := s.retention(t).Once(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "outboxctl grant janitor") {
			t.Errorf("the error is %v", err)
		}
		if _, err := s.retention(t).Due(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "outboxctl grant janitor") {
			t.Errorf("the error is %v", err)
		}
	})
}

// TestWhatIsWrongWithTheSettingsIsSaidAtOnce.
func TestWhatIsWrongWithTheSettingsIsSaidAtOnce(t *testing.T) {
	t.Parallel()
	_, err := retention.New(nil, retention.Config{
		Published: 720, Dead: 1, Dedupe: time.Second, Every: 1, Batch: 5_001, Pause: time.Hour, MaxStep: 1,
	})
	if err == nil {
		t.Fatal("nothing is wrong")
	}
	for _, name := range []string{
		"Published: 720ns", "Dead: 1ns", "Dedupe: 1s", "Every: 1ns", "Batch: 5001", "Pause: 1h", "MaxStep: 1ns",
	} {
		if !strings.Contains(err.Error(), name) {
			t.Errorf("nothing about %s:\n%v", name, err)
		}
	}
	if _, err := retention.New(nil, retention.Config{}); err != nil {
		t.Errorf("the defaults: %v", err)
	}
}

// TestAttemptsGoWithTheirEvent: what went wrong with an event is kept as long as the event, and no longer.
func TestAttemptsGoWithTheirEvent(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 30, 31*day)
		s.events(t, 20, day)
		s.Exec(t, `INSERT INTO {schema}.outbox_attempts (event_id, number, relay, class, topic, error)
			SELECT id, n, gen_random_uuid(), 'rejected', 'orders', 'no' FROM {schema}.outbox_events, generate_series(1, 3) n`)
		s.wantWent(t, s.once(t), "published=30 discarded=0 dead=0 dedupe=0")
		if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_attempts"); n != 60 {
			t.Errorf("%d attempts are left, want 60", n)
		}
	})
}
