package retention_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/retention"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

const went0 = "published=0 discarded=0 dead=0 dedupe=0"

// TestAWalkGoesOnWhereItStopped: a run looks at nothing that an earlier one has deleted, also when that one is of
// another process and was stopped in the middle. It stops before the first that is too young.
func TestAWalkGoesOnWhereItStopped(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 400, 31*day)
		s.events(t, 5_000, day)
		s.wantWent(t, s.once(t, hundreds), "published=400 discarded=0 dead=0 dedupe=0")
		if got := s.walked(t); got != 400 {
			t.Errorf("the walk remembers %d, and number 401 is too young", got)
		}
		s.Exec(t, "UPDATE {schema}.outbox_retention SET place = 450 WHERE kind = 'published'") // as if it had come so far
		s.Exec(t, "ALTER TABLE {schema}.outbox_events DISABLE TRIGGER outbox_events_append_only")
		s.Exec(t, "UPDATE {schema}.outbox_events SET created_at = created_at - interval '30 days', published_at = "+
			"published_at - interval '30 days' WHERE seq <= 700")
		s.wantWent(t, s.once(t, hundreds), "published=250 discarded=0 dead=0 dedupe=0")
		if got := s.walked(t); got != 700 {
			t.Errorf("the walk remembers %d, and number 701 is too young", got)
		}
		// Stopped in the middle: what it has not come to is there, and the next one comes to it.
		s.Exec(t, "UPDATE {schema}.outbox_events SET created_at = created_at - interval '30 days', published_at = "+
			"published_at - interval '30 days' WHERE seq BETWEEN 701 AND 1200")
		s.Exec(t, `CREATE FUNCTION {schema}.fail() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN IF OLD.seq = 1001 THEN RAISE 'the server is full'; END IF; RETURN OLD; END $$`)
		s.Exec(t, "CREATE TRIGGER fail BEFORE DELETE ON {schema}.outbox_events FOR EACH ROW EXECUTE FUNCTION {schema}.fail()")
		if _, err := s.retention(t, hundreds).Once(t.Context()); err == nil ||
			!strings.Contains(err.Error(), "the server is full") {
			t.Fatalf("the error is %v", err)
		}
		if got := s.walked(t); got != 1_000 {
			t.Errorf("the walk remembers %d, and stopped behind 1000", got)
		}
		s.Exec(t, "DROP TRIGGER fail ON {schema}.outbox_events")
		s.wantWent(t, s.once(t, hundreds), "published=200 discarded=0 dead=0 dedupe=0")
	})
}

// TestWhatIsSettledLateGoesWithinADay: published or discarded behind the walk's back, or written there by a transaction
// that was open.
func TestWhatIsSettledLateGoesWithinADay(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		late := map[string]string{"published": s.event(t, dead, 31*day), "discarded": s.event(t, dead, 31*day)}
		number := s.Count(t, "SELECT nextval('{schema}.outbox_events_seq_seq')") // of a transaction that is open
		s.events(t, 100, 31*day)
		s.wantWent(t, s.once(t), "published=100 discarded=0 dead=0 dedupe=0")
		s.Exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = created_at WHERE id::text = $1",
			late["published"])
		s.Exec(t, "UPDATE {schema}.outbox_events SET state = 7 WHERE id::text = $1", late["discarded"])
		s.Exec(t, `INSERT INTO {schema}.outbox_events (seq, id, event_type, aggregate_type, aggregate_id, payload_json, state,
				created_at, published_at, lane)
			OVERRIDING SYSTEM VALUE SELECT $1, {schema}.outbox_uuid7(), 'order_created', 'order', '1', '{}', 6,
				now() - interval '31 days', now() - interval '31 days', 1`, number)
		s.wantWent(t, s.once(t), went0)
		// A round begins early enough for the next one to begin within a day.
		for _, c := range []struct {
			ago  string
			want string
		}{
			{"22 hours 50 minutes", went0}, {"23 hours", "published=2 discarded=1 dead=0 dedupe=0"},
		} {
			s.Exec(t, "UPDATE {schema}.outbox_retention SET round_at = now() - $1::text::interval", c.ago)
			s.wantWent(t, s.once(t), c.want)
		}
		// Where it runs once per day, every run is a round. So is one after a clock that was ahead.
		s.event(t, published, 31*day)
		s.Exec(t, "UPDATE {schema}.outbox_retention SET place = 1000")
		s.wantWent(t, s.once(t, func(c *retention.Config) { c.Every = day }), "published=1 discarded=0 dead=0 dedupe=0")
		s.event(t, published, 31*day)
		s.Exec(t, "UPDATE {schema}.outbox_retention SET place = 1000, round_at = now() + interval '1 day'")
		s.wantWent(t, s.once(t), "published=1 discarded=0 dead=0 dedupe=0")
	})
}

// TestAClockThatWasWrongDoesNotStopTheWalk: events of that time have to stay, and those behind them go.
func TestAClockThatWasWrongDoesNotStopTheWalk(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 300, -40*day) // a month ahead, and more of them than a batch
		s.events(t, 300, 31*day)
		for range 30 {
			s.event(t, published, day)
		}
		s.events(t, 300, 31*day)
		s.wantWent(t, s.once(t, hundreds), "published=600 discarded=0 dead=0 dedupe=0")
		// In the next round they stand alone among numbers that are nobody's.
		s.events(t, 300, 31*day)
		s.nextRound(t)
		s.wantWent(t, s.once(t, hundreds), "published=300 discarded=0 dead=0 dedupe=0")
		if n := s.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 330 {
			t.Errorf("%d are left", n)
		}
	})
}

// TestNumbersThatAreNobodysAreSteppedOver: also ten million of them, in a few statements.
func TestNumbersThatAreNobodysAreSteppedOver(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.events(t, 300, 31*day)
		s.Exec(t, "SELECT setval('{schema}.outbox_events_seq_seq', 10000000)")
		s.events(t, 950, 31*day)
		s.noteStatements(t)
		s.wantWent(t, s.once(t, hundreds), "published=1250 discarded=0 dead=0 dedupe=0")
		if n := s.Count(t, "SELECT max(rows) FROM {schema}.statements"); n > 100 {
			t.Errorf("a statement deleted %d rows", n)
		}
		if n := s.Count(t, "SELECT count(*) FROM {schema}.statements"); n > 80 { // one row for each, whether something went
			t.Errorf("it took %d statements", n)
		}
	})
}

// TestTheGuardLooksAtASample: where there are more numbers than it looks at, it scales; where they are mostly nobody's,
// a sample tells too little and it counts all.
func TestTheGuardLooksAtASample(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		reason := func() string {
			t.Helper()
			result := s.once(t)
			if len(result.Halted) != 1 || result.Published != 0 {
				t.Fatalf("%s", went(result))
			}
			return result.Halted[0].Reason
		}
		s.events(t, 12_000, 31*day)
		s.Exec(t, "SELECT setval('{schema}.outbox_events_seq_seq', 10000000)")
		s.events(t, 11_999, day)
		if got := reason(); !strings.HasPrefix(got, "12000 rows would go and 11999 stay: ") {
			t.Errorf("the reason: %s", got)
		}
		s.wantWent(t, s.once(t, func(c *retention.Config) { c.Confirmed = time.Now() }),
			"published=12000 discarded=0 dead=0 dedupe=0")
		s.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = NULL")
		s.Exec(t, "UPDATE {schema}.outbox_events SET state = 7, published_at = NULL")
		s.Exec(t, "DELETE FROM {schema}.outbox_events")
		// 115,000 events, of which 3 in 5 would go.
		s.events(t, 69_000, 31*day)
		s.events(t, 46_000, day)
		got := reason()
		parts := regexp.MustCompile(`^about (\d+) rows would go and (\d+) stay: `).FindStringSubmatch(got)
		if parts == nil {
			t.Fatalf("the reason: %s", got)
		}
		for i, want := range []int{69_000, 46_000} {
			var n int
			if _, err := fmt.Sscan(parts[i+1], &n); err != nil || n < want-2_500 || n > want+2_500 {
				t.Errorf("the reason: %s", got)
			}
		}
		all, err := s.retention(t).Due(t.Context())
		if err != nil || !all[0].Estimated || all[0].Halted == "" || all[3].Estimated {
			t.Errorf("due: %+v, %v", all, err)
		}
	})
}

// TestRetentionReadsByTheIndex looks at the plans: without statistics, with those of a table in which all is settled,
// and with generic plans. A batch costs as much where a snapshot holds what was deleted before.
func TestRetentionReadsByTheIndex(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, s *env) {
		s.Exec(t, "ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = off)")
		s.events(t, 60_000, 31*day)
		s.events(t, 60_000, day)
		reader, err := s.Pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = reader.Rollback(t.Context()) })
		if _, err := reader.Exec(t.Context(), s.SQL("SELECT FROM {schema}.outbox_events LIMIT 1")); err != nil {
			t.Fatal(err)
		}
		s.Exec(t, "DELETE FROM {schema}.outbox_events WHERE seq <= 20000")
		s.Exec(t, "UPDATE {schema}.outbox_retention SET worker = $1::text::uuid", someone)
		cutOff := time.Now().Add(-30 * day).UTC().Format(time.RFC3339)
		for _, when := range []string{"without statistics", "with statistics"} {
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				for _, c := range []struct {
					name, file, args string
					most             int // pages
				}{
					// A row costs its page, a page of each index, and the ways to it; a lane costs its way down the index.
					{"a batch", "events", "20000, 21000, '" + cutOff + "', 1000", 1000*16 + 64*8},
					{"a batch of many numbers", "events", "20000, 1068576, '" + cutOff + "', 1000", 64*1000*2 + 1000*16},
					{"a sample", "due_events", "'" + cutOff + "', 100, 1000", 100_000*3 + 100*64*4 + 20_000},
					{"a round", "round", "'published', '" + someone + "', 0", 64*8 + 200},
				} {
					t.Run(strings.Join([]string{c.name, when, mode}, " "), func(t *testing.T) {
						s.explain(t, c.file, c.args, mode, c.most)
					})
				}
			}
			s.Exec(t, "ANALYZE {schema}.outbox_events")
		}
	})
}

const someone = "00000000-0000-7000-8000-000000000001"

// explain runs a statement of retention's, takes it back, and looks at its plan.
func (s *env) explain(t *testing.T, file, args, mode string, most int) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", "..", "..", "relay", "retention", "sql", file+".sql"))
	if err != nil {
		t.Fatal(err)
	}
	tx := s.Begin(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, statement := range []string{
		"DEALLOCATE ALL", "SET LOCAL jit = off", "SET LOCAL plan_cache_mode = " + mode, "PREPARE p AS " + s.SQL(string(text)),
	} {
		if _, err := tx.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	var plan []byte
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) EXECUTE p("+args+")",
		pgx.QueryExecModeSimpleProtocol).Scan(&plan); err != nil {
		t.Fatal(err)
	}
	if got := pgtest.Pages(t, plan); got > most {
		t.Errorf("%d pages were looked at, want at most %d\n%s", got, most, plan)
	}
	for _, node := range regexp.MustCompile(`(?s)\{[^{}]*"Relation Name": "outbox_events"[^{}]*`).FindAll(plan, -1) {
		if !strings.Contains(string(node), `"outbox_events_pkey"`) && !strings.Contains(string(node), `"ModifyTable"`) {
			t.Errorf("the events are read otherwise than by their key:\n%s", node)
		}
	}
}
