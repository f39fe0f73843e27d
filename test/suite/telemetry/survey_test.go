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
INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state)
SELECT gen_random_uuid(), 'order_placed', 'order', 'old-' || i, '{}', 0 FROM generate_series(1, 50000) i;
UPDATE {schema}.outbox_events SET state = 6, published_at = now();
INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state, published_at)
SELECT gen_random_uuid(), 'order_placed', 'order', 'published-' || i, '{}', 6, now() FROM generate_series(1, 50000) i;
WITH relay AS (INSERT INTO {schema}.outbox_relays (id, token, name, lanes)
  SELECT gen_random_uuid(), gen_random_uuid(), 'r', array_agg(lane) FROM {schema}.outbox_lanes
  RETURNING id, token, lanes
), beat AS (INSERT INTO {schema}.outbox_beats (relay, number, until, lanes, floors)
  SELECT id, 1, now() + interval '1 hour', lanes, array_fill((SELECT max(seq) FROM {schema}.outbox_events), ARRAY[64])
  FROM relay
) UPDATE {schema}.outbox_lanes l SET owner = r.id, token = r.token FROM relay r;
INSERT INTO {schema}.outbox_events (id, created_at, event_type, aggregate_type, aggregate_id, payload_json, state,
  next_attempt_at, attempt_count)
SELECT gen_random_uuid(), now() - interval '1 hour', 'order_placed', 'order', 'o-' || i % 5000, '{}', s,
  CASE s WHEN 1 THEN now() END, CASE WHEN s > 3 THEN 10 ELSE 0 END
  FROM (SELECT i, CASE WHEN i <= 100000 THEN 0 ELSE 1 + i % 5 END AS s FROM generate_series(1, 200000) i) g`

// surveyed is a statement of the survey, the indexes that it may read the events by, and how many rows it looks at.
type surveyed struct {
	name    string
	args    string
	indexes string
	looks   int
}

func statements() []surveyed {
	limit := fmt.Sprint(survey.Limit)
	return []surveyed{
		{"ready", limit, "outbox_events_ready", survey.Limit},
		{"held", limit, "outbox_events_(due|held)", 3 * survey.Limit},
		{"dead", limit + ", '{order_slow}', '{1000}', 10", "outbox_events_dead", 2 * survey.Limit},
		{"fleet", "", "none", 0},
		{"retention", "", "none", 0},
	}
}

// TestALaneWhoseOwnerIsSilentIsUnheld: nobody works for it, though nobody has ended that relay yet. Of a relay's beats
// the one with the highest number counts.
func TestALaneWhoseOwnerIsSilentIsUnheld(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		ctx, stop := context.WithCancel(t.Context())
		surveyor, ended := survey.New(survey.Config{Schema: db.Schema, Every: 10 * time.Millisecond}), make(chan struct{})
		go func() {
			defer close(ended)
			surveyor.Run(ctx, db.Pool)
		}()
		defer func() {
			stop()
			<-ended
		}()
		want := func(unheld, relays int64) {
			t.Helper()
			eventually.True(t, fmt.Sprintf("%d lanes without an owner, %d relays", unheld, relays), func() bool {
				report := surveyor.Report()
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

// TestASurveyIsCheap looks at the plans, before and after ANALYZE, and with generic ones: none may walk the table.
func TestASurveyIsCheap(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		db.Exec(t, "ALTER TABLE {schema}.outbox_events SET (autovacuum_enabled = off)")
		if err := pgx.BeginFunc(t.Context(), db.Pool, func(tx pgx.Tx) error {
			_, err := tx.Exec(t.Context(), db.SQL(fill), pgx.QueryExecModeSimpleProtocol)
			return err
		}); err != nil {
			t.Fatal(err)
		}
		for _, when := range []string{"without statistics", "with statistics"} {
			for _, mode := range []string{"force_custom_plan", "force_generic_plan"} {
				for _, s := range statements() {
					t.Run(s.name+" "+when+" "+mode, func(t *testing.T) {
						s.explain(t, db, mode)
					})
				}
			}
			db.Exec(t, "ANALYZE {schema}.outbox_events")
		}
	})
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
			"SET LOCAL plan_cache_mode = " + mode, "PREPARE p AS " + text,
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
	var explained []struct {
		Plan struct {
			Hit  int `json:"Shared Hit Blocks"`
			Read int `json:"Shared Read Blocks"`
		}
	}
	if err := json.Unmarshal(plan, &explained); err != nil {
		t.Fatal(err)
	}
	// A row costs its page and now and then one of the index; a lane costs the way down into the index.
	most := 3*s.looks + 64*20 + 200
	if got := explained[0].Plan.Hit + explained[0].Plan.Read; got > most {
		t.Errorf("%d pages were looked at, want at most %d\n%s", got, most, plan)
	}
	var nodes any
	if err := json.Unmarshal(plan, &nodes); err != nil {
		t.Fatal(err)
	}
	allowed := regexp.MustCompile("^" + s.indexes + "$")
	for _, index := range indexesOf(nodes) {
		if !allowed.MatchString(index) {
			t.Errorf("the events are read by %s, want %s\n%s", index, s.indexes, plan)
		}
	}
}

// indexesOf lists how a plan reads the events.
func indexesOf(node any) (names []string) {
	switch node := node.(type) {
	case []any:
		for _, each := range node {
			names = append(names, indexesOf(each)...)
		}
	case map[string]any:
		kind, _ := node["Node Type"].(string)
		index, _ := node["Index Name"].(string)
		if relation, _ := node["Relation Name"].(string); relation == "outbox_events" {
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
