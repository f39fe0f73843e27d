package telemetry

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/survey"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// fill writes an outbox on a bad day: 300,000 events, of which 200,000 are not published. Triggers are off, because
// they take most of the time. 50,000 were published just now, and vacuum has not come by since. How far the owner of
// the lanes is, only its beat tells.
const fill = `
SET LOCAL session_replication_role = replica;
INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, state)
SELECT {schema}.outbox_lane('default', 'order', 'old-' || i), gen_random_uuid(), 'order_placed', 'order', 'old-' || i,
  '{}', 0 FROM generate_series(1, 50000) i;
UPDATE {schema}.outbox_events SET state = 6, published_at = now();
INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json, state,
  published_at)
SELECT {schema}.outbox_lane('default', 'order', 'published-' || i), gen_random_uuid(), 'order_placed', 'order',
  'published-' || i, '{}', 6, now() FROM generate_series(1, 50000) i;
WITH relay AS (INSERT INTO {schema}.outbox_relays (id, token, name, lanes)
  SELECT gen_random_uuid(), gen_random_uuid(), 'r', array_agg(lane) FROM {schema}.outbox_lanes
  RETURNING id, token, lanes
), beat AS (INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors)
  SELECT id, 1, now() + interval '1 hour', lanes, array_fill((SELECT max(seq) FROM {schema}.outbox_events), ARRAY[64])
  FROM relay
) UPDATE {schema}.outbox_lanes l SET owner = r.id, token = r.token FROM relay r;
WITH event AS (
  INSERT INTO {schema}.outbox_events (lane, id, created_at, event_type, aggregate_type, aggregate_id, payload_json,
    state, attempt_count)
  SELECT {schema}.outbox_lane('default', 'order', 'o-' || i % 5000), gen_random_uuid(), now() - interval '1 hour',
    'order_placed', 'order', 'o-' || i % 5000, json_build_object('state', s),
    CASE WHEN s BETWEEN 1 AND 4 THEN 1 ELSE s END, CASE WHEN s > 3 THEN 10 ELSE 0 END
    FROM (SELECT i, CASE WHEN i <= 100000 THEN 0 ELSE 1 + i % 5 END AS s FROM generate_series(1, 200000) i) g
  RETURNING *, (payload_json ->> 'state')::smallint AS stands
), held AS (
  INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
  SELECT lane, seq, stands, now(), namespace, event_type, aggregate_type, aggregate_id FROM event WHERE state = 1
) INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
    aggregate_type, aggregate_id, error_reason, payload_json)
  SELECT seq, id, created_at, 10, stands = 4, namespace, event_type, aggregate_type, aggregate_id, 'max_attempts', '{}'
    FROM event WHERE stands IN (4, 5) ORDER BY stands, seq`

// surveyed is a statement of the survey, the indexes by which it may read the tables that grow, and how many rows it
// looks at. A row costs so many pages: its own, and the way to it.
type surveyed struct {
	name    string
	args    string
	indexes string
	looks   int
	pages   int
}

func statements() []surveyed {
	limit, topics := fmt.Sprint(survey.Limit), ", '{order_placed}', '{orders}'"
	return []surveyed{
		{"ready", limit + topics, "outbox_events_pkey", 3 * survey.Limit, 2},
		{"held", limit + topics, "outbox_held_since|outbox_events_pkey", 3 * survey.Limit, 3},
		// The event of each is looked for, by its key or by its id.
		{
			"dead", limit + ", '{order_slow}', '{1000}', 10",
			"outbox_held_since|outbox_dlq_pkey|outbox_events_pkey|outbox_events_id", 2 * survey.Limit, 7,
		},
		{"fleet", "", "none", 0, 0},
		{"retention", "", "none", 0, 0},
	}
}

// TestALaneWhoseOwnerIsSilentIsUnheld: nobody works for it, though nobody has ended that relay yet. Of a relay's beats
// the one with the highest number counts.
func TestALaneWhoseOwnerIsSilentIsUnheld(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		made := surveyor(t, db)
		want := func(unheld, relays int64) {
			t.Helper()
			eventually.True(t, fmt.Sprintf("%d lanes without an owner, %d relays", unheld, relays), func() bool {
				report := made.Report()
				return report.UnheldLanes == unheld && report.Relays == relays
			})
		}
		id := outbox.NewID().String()
		want(64, 0)
		db.Exec(t, leases.Join, id, "a", "1 hour")
		want(64, 1)
		db.Exec(t, leases.Hold, id)
		want(0, 1)
		db.Exec(t, leases.Expire, "a")
		want(64, 0)
		for _, number := range []int{0, 2} {
			db.Exec(t, "INSERT INTO {schema}.outbox_beats (relay, number, until) VALUES ($1::text::uuid, $2, "+
				"clock_timestamp() + interval '1 hour')", id, number)
		}
		want(0, 1)
		db.Exec(t, "DELETE FROM {schema}.outbox_beats WHERE number = 2")
		want(64, 0)
	})
}

// surveyor asks the tables until the test ends.
func surveyor(t *testing.T, db *pgtest.DB) *survey.Surveyor {
	t.Helper()
	ctx, stop := context.WithCancel(t.Context())
	made, ended := survey.New(survey.Config{Schema: db.Schema, Every: 10 * time.Millisecond}), make(chan struct{})
	go func() {
		defer close(ended)
		made.Run(ctx, db.Pool)
	}()
	t.Cleanup(func() {
		stop()
		<-ended
	})
	return made
}

// TestASurveySeesWhatIsReadyAmongTheSettled: also in one lane alone, and behind more settled events than are looked at,
// as when a transaction is open for hours.
func TestASurveySeesWhatIsReadyAmongTheSettled(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = off)")
		made := surveyor(t, db)
		events := func(state, count int, age string) {
			db.Exec(t, `INSERT INTO {schema}.outbox_events (lane, id, event_type, aggregate_type, aggregate_id, payload_json,
					state, created_at)
				SELECT {schema}.outbox_lane('default', 'order', '1'), gen_random_uuid(), 'order_placed', 'order', '1', '{}', $1,
					now() - $3::text::interval FROM generate_series(1, $2::int)`, state, count, age)
		}
		want := func(ready int64, oldest time.Duration) {
			t.Helper()
			var got survey.Count
			eventually.True(t, fmt.Sprintf("%d events are ready, the oldest since %s", ready, oldest), func() bool {
				got = made.Report().Ready
				return got.Events == ready && got.Oldest >= oldest && got.Oldest < oldest+time.Hour
			}, func() string { return fmt.Sprintf("%+v", got) })
		}
		events(6, 300, "5 hours")
		events(0, 20, "4 hours") // among those that are looked at first
		events(6, 20_000, "3 hours")
		want(20, 4*time.Hour)
		events(0, 30, "2 hours") // the newest
		want(50, 4*time.Hour)
		db.Exec(t, "UPDATE {schema}.outbox_lanes SET floor = 320")
		want(30, 2*time.Hour)
		events(0, 12_000, "2 hours")
		db.Exec(t, "UPDATE {schema}.outbox_lanes SET floor = 20320")
		want(survey.Limit, 2*time.Hour)
	})
}

// TestADeadEventCountsOnce, however often it has died; one that was redriven or closed does not count.
func TestADeadEventCountsOnce(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		made := surveyor(t, db)
		died := func(letters, stands int) {
			db.Exec(t, `WITH event AS (
					INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state)
					SELECT id, 'order_placed', 'order', '1', json_build_object('eventId', id), $2::smallint
					  FROM (SELECT {schema}.outbox_uuid7() AS id OFFSET 0) u RETURNING *)
				INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
					aggregate_type, aggregate_id, error_reason, payload_json)
				SELECT seq, id, created_at, 10, false, namespace, event_type, aggregate_type, aggregate_id, 'max_attempts',
					payload_json FROM event CROSS JOIN generate_series(1, $1::int)`, letters, stands)
		}
		for _, stands := range []int{0, 6, 7} {
			died(1, stands)
		}
		died(3, 5)
		died(1, 5)
		eventually.True(t, "two are dead", func() bool {
			report := made.Report()
			return report.Dead.Events == 2 && report.BlockedAggregates == 0
		})
	})
}

// TestASurveyIsCheap looks at the plans, before and after ANALYZE, and with generic ones: none may walk the table.
func TestASurveyIsCheap(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		for _, table := range []string{"outbox_events", "outbox_held", "outbox_dlq"} {
			db.Exec(t, "ALTER TABLE {schema}."+table+" SET (autovacuum_enabled = off)")
		}
		if err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), db.SQL(fill), pgx.QueryExecModeSimpleProtocol)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		explainAll(t, db, "without statistics")
		db.Exec(t, "ANALYZE {schema}.outbox_events, {schema}.outbox_held, {schema}.outbox_dlq")
		explainAll(t, db, "with statistics")
		// By statistics of a time when all was settled, nothing is ready or dead.
		db.Exec(t, "UPDATE {schema}.outbox_events SET state = 6, published_at = now() WHERE state IN (0, 5)")
		db.Exec(t, "ANALYZE {schema}.outbox_events")
		db.Exec(t, "UPDATE {schema}.outbox_events SET state = 0 WHERE seq > 100000 AND seq <= 200000")
		explainAll(t, db, "after health")
	})
}

// explainAll looks at the plans of all statements, planned for their arguments and for any.
func explainAll(t *testing.T, db *pgtest.DB, when string) {
	t.Helper()
	for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
		for _, s := range statements() {
			t.Run(strings.Join([]string{s.name, when, mode}, " "), func(t *testing.T) { s.explain(t, db, mode) })
		}
	}
}

// explain runs it and looks at the plan.
func (s surveyed) explain(t *testing.T, db *pgtest.DB, mode string) {
	t.Helper()
	conn, err := db.Pool.Acquire(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Release()
	text := db.SQL(read(t, "relay/survey/sql/"+s.name+".sql"))
	execute := "EXECUTE p"
	if s.args != "" {
		execute += "(" + s.args + ")"
	}
	var plan []byte
	err = pgx.BeginFunc(t.Context(), conn, func(tx pgx.Tx) error {
		for _, statement := range []string{
			"DEALLOCATE ALL", "SET LOCAL jit = off", "SET LOCAL max_parallel_workers_per_gather = 0",
			"SET LOCAL enable_bitmapscan = off", "SET LOCAL plan_cache_mode = " + mode, "PREPARE p AS " + text,
		} {
			if _, err := tx.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
				return fmt.Errorf("%s: %w", statement, err)
			}
		}
		return tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+execute,
			pgx.QueryExecModeSimpleProtocol).Scan(&plan)
	})
	if err != nil {
		t.Fatal(err)
	}
	// A lane costs the way down into the index.
	most := s.pages*s.looks + 64*20 + 200
	if got := pgtest.Pages(t, plan); got > most {
		t.Errorf("%d pages were looked at, want at most %d\n%s", got, most, plan)
	}
	var nodes any
	if err := json.Unmarshal(plan, &nodes); err != nil {
		t.Fatal(err)
	}
	allowed := regexp.MustCompile("^(" + s.indexes + ")$")
	for _, index := range indexesOf(nodes) {
		if !allowed.MatchString(index) {
			t.Errorf("it reads by %s, want %s\n%s", index, s.indexes, plan)
		}
	}
}

// indexesOf lists how a plan reads the tables that grow.
func indexesOf(node any) (names []string) {
	switch node := node.(type) {
	case []any:
		for _, each := range node {
			names = append(names, indexesOf(each)...)
		}
	case map[string]any:
		kind, _ := node["Node Type"].(string)
		index, _ := node["Index Name"].(string)
		switch node["Relation Name"] {
		case "outbox_events", "outbox_held", "outbox_dlq":
			if index == "" {
				index = kind
			}
			names = append(names, index)
		}
		for _, each := range node {
			names = append(names, indexesOf(each)...)
		}
	}
	return names
}

// TestASurveyCountsUpToItsLimit has a relay that publishes nothing look at such a day.
func TestASurveyCountsUpToItsLimit(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, pgtest.Servers()[0])
	db.Exec(t, "SELECT {schema}.outbox_pause('ada', 'a test', 'all')")
	if err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
		_, err := tx.Exec(t.Context(), db.SQL(fill), pgx.QueryExecModeSimpleProtocol)
		return err
	}); err != nil {
		t.Fatal(err)
	}
	// Else the first survey does much of vacuum's work, within the time that a survey has. What it costs then, the plans
	// say.
	db.Exec(t, "VACUUM (ANALYZE) {schema}.outbox_events")
	w := newEnv(t, db, nil)
	w.until(map[string]string{
		"survey_limit_events": "= 10000", `outbox_backlog_events{state="ready"}`: "= 10000",
		`outbox_backlog_events{state="retrying"}`: "= 10000",
		`outbox_backlog_events{state="parked"}`:   "= 10000", `outbox_backlog_events{state="waiting"}`: "> 0",
		"outbox_dead_events":         "= 20000",
		"outbox_max_attempts_events": "= 20000", `outbox_oldest_event_age_seconds{state="ready"}`: ">= 3600",
		"outbox_blocked_aggregates": "> 0",
	})
}

// TestASurveyNeedsNoMoreThanARelay: with the grants of a relay alone, what retention does is left out, and nothing is
// stale.
func TestASurveyNeedsNoMoreThanARelay(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		role := pgtest.NewRole(t, db.Server, "relay")
		db.Exec(t, "SELECT {schema}.outbox_grant('relay', $1)", role)
		w := newEnv(t, db, func(config *relay.Config) { config.Database = pgtest.As(t, db.URL, role) })
		if err := eventually.Within(t.Context(), eventually.Patience, "the log says what is left out",
			func() (bool, error) { return strings.Contains(w.log.String(), "part=retention"), nil }); err != nil {
			t.Fatal(err)
		}
		families := w.until(map[string]string{
			"outbox_relays": "= 1", `outbox_backlog_events{state="ready"}`: "= 0",
			`outbox_backlog_events{state="parked"}`: "= 0", "outbox_dead_events": "= 0",
			`survey_age_seconds{part="dead"}`: "< 60",
		})
		if _, there := families["posthaste_outbox_retention_halted"]; there {
			t.Error("a relay's role sees what retention does")
		}
		if _, there := value(families, `survey_age_seconds{part="retention"}`); there {
			t.Error("what this role may not ask counts as stale")
		}
	})
}

// TestASurveyPassesAPooler: its statements and their bounds work on connections that are lent for a transaction.
func TestASurveyPassesAPooler(t *testing.T) {
	t.Parallel()
	db := pgtest.New(t, pgtest.Servers()[0])
	w := newEnv(t, db, func(config *relay.Config) {
		config.Database, config.ListenDatabase = services.PgBouncer18()+"&default_query_exec_mode=exec", "off"
	})
	w.until(map[string]string{
		"outbox_relays": "= 1", `outbox_backlog_events{state="ready"}`: "= 0", "outbox_dead_events": "= 0",
		`outbox_backlog_events{state="waiting"}`:           "= 0",
		`outbox_retention_deleted_rows_total{kind="dead"}`: "= 0",
	})
}

// TestTheSurveyIsChecked: what cannot be meant is refused.
func TestTheSurveyIsChecked(t *testing.T) {
	t.Parallel()
	for _, every := range []time.Duration{-1, time.Millisecond} {
		if _, err := relay.New(relay.Config{SurveyEvery: every}); err == nil ||
			!strings.Contains(err.Error(), "SurveyEvery") {
			t.Errorf("%s: %v", every, err)
		}
	}
}
