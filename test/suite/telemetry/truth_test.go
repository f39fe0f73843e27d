package telemetry

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/relay/retention"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

// TestMetricsTellTheTruth makes everything happen to one relay that a metric is about, and looks.
func TestMetricsTellTheTruth(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		w := newEnv(t, db, nil)
		for _, stage := range []struct {
			name string
			run  func()
		}{
			{"published", w.published},
			{"in flight", w.inFlight},
			{"open writer", w.openWriter},
			{"dead and blocking", w.deadAndBlocking},
			{"retrying and out of attempts", w.outOfAttempts},
			{"unknown type", w.unknownType},
			{"missing topic", w.missingTopic},
			{"operator's pause", w.operatorsPause},
			{"retention", w.retention},
			{"lane taken", w.laneTaken},
			{"another relay", w.anotherRelay},
			{"survey that cannot be answered", w.failingSurvey},
			{"restored database", w.restored},
		} {
			if ok := t.Run(stage.name, func(t *testing.T) {
				before := w.t
				w.t = t
				defer func() { w.t = before }()
				stage.run()
			}); !ok {
				t.FailNow()
			}
		}
		w.allMoved()
	})
}

func (w *env) inTopic(series string) string { return strings.ReplaceAll(series, "TOPIC", w.topic) }

func (w *env) published() {
	w.until(map[string]string{
		"relay_lanes": "= 64", "outbox_unheld_lanes": "= 0", "outbox_relays": "= 1",
		`outbox_backlog_events{state="ready"}`: "= 0",
	})
	var ids []string
	for i := range 20 {
		ids = append(ids, fmt.Sprint("published-", i))
	}
	w.emit(w.placed, ids...)
	families := w.until(map[string]string{
		w.inTopic(`relay_published_events_total{topic="TOPIC",event_type="order_placed"}`): "= 20",
		w.inTopic(`relay_publish_duration_seconds_count{topic="TOPIC"}`):                   "= 20",
		w.inTopic(`relay_commit_to_publish_seconds_count{topic="TOPIC"}`):                  "= 20",
		"relay_settle_duration_seconds_count":                                              "= 20",
		"relay_in_flight_events":                                                           "= 0",
	})
	// The latency is that of the table, less at most the time of the settle itself.
	var table float64
	query := w.SQL("SELECT extract(epoch FROM sum(published_at - created_at))::float8 FROM {schema}.outbox_events WHERE " +
		"state = 6")
	if err := w.Pool.QueryRow(w.t.Context(), query).Scan(&table); err != nil {
		w.t.Fatal(err)
	}
	said, _ := value(families, w.inTopic(`relay_commit_to_publish_seconds_sum{topic="TOPIC"}`))
	settle, _ := value(families, "relay_settle_duration_seconds_sum")
	if said > table || said < table-settle {
		w.t.Errorf("commit to publish: the sum is %v s, the table says %v s, and the settles took %v s", said, table, settle)
	}
	publish, _ := value(families, w.inTopic(`relay_publish_duration_seconds_sum{topic="TOPIC"}`))
	if publish <= 0 || publish > said {
		w.t.Errorf("the publishes took %v s, which is part of %v s", publish, said)
	}
}

func (w *env) inFlight() {
	open := w.gate("held-up")
	w.emit(w.placed, "held-up")
	w.until(map[string]string{
		"relay_in_flight_events": "= 1", `outbox_backlog_events{state="ready"}`: "= 1",
		`outbox_oldest_event_age_seconds{state="ready"}`: "> 1",
	})
	open()
	w.until(map[string]string{
		"relay_in_flight_events": "= 0", `outbox_backlog_events{state="ready"}`: "= 0",
		`outbox_oldest_event_age_seconds{state="ready"}`: "= 0",
	})
}

func (w *env) openWriter() {
	tx := w.Begin(w.t)
	if _, err := outbox.Emit(w.t.Context(), outbox.InSchema(tx, w.Schema), w.placed.New("never", note{})); err != nil {
		w.t.Fatal(err)
	}
	w.until(map[string]string{"relay_oldest_writer_age_seconds": "> 1", "relay_watermark_lag_events": "= 1"})
	if err := tx.Rollback(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.until(map[string]string{"relay_oldest_writer_age_seconds": "= 0", "relay_watermark_lag_events": "= 0"})
}

func (w *env) deadAndBlocking() {
	w.insert("order_placed", "broken", `{"n":-1}`)
	w.until(map[string]string{
		`relay_dead_letters_total{reason="invalid_payload"}`:                      "= 1",
		w.inTopic(`relay_failed_publishes_total{class="terminal",topic="TOPIC"}`): "= 1",
		"outbox_dead_events":                            "= 1",
		"outbox_blocked_aggregates":                     "= 1",
		"outbox_max_attempts_events":                    "= 0",
		`outbox_oldest_event_age_seconds{state="dead"}`: "> 0",
	})
	w.emit(w.placed, "broken")
	w.until(map[string]string{
		`outbox_backlog_events{state="waiting"}`: "= 1", `outbox_oldest_event_age_seconds{state="waiting"}`: "> 0",
	})
	w.discardDead()
	w.until(map[string]string{
		"outbox_dead_events": "= 0", "outbox_blocked_aggregates": "= 0", `outbox_backlog_events{state="waiting"}`: "= 0",
	})
}

// discardDead is what an operator might do.
func (w *env) discardDead() {
	w.t.Helper()
	rows, err := w.Pool.Query(w.t.Context(), w.SQL("SELECT e.id::text FROM {schema}.outbox_events e WHERE "+
		states.Of+" IN (4, 5)"))
	if err != nil {
		w.t.Fatal(err)
	}
	texts, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		w.t.Fatal(err)
	}
	action := operator.Action{ID: outbox.NewID(), Actor: "ada", Reason: "a test"}
	for _, text := range texts {
		id, err := outbox.ParseID(text)
		if err != nil {
			w.t.Fatal(err)
		}
		if _, err := operator.New(w.Pool, w.Schema).Discard(w.t.Context(), action, id); err != nil {
			w.t.Fatal(err)
		}
	}
}

func (w *env) outOfAttempts() {
	w.reject("refused-slowly", true)
	w.reject("refused-twice", true)
	w.emit(w.slow, "refused-slowly")
	w.emit(w.twice, "refused-twice")
	w.until(map[string]string{
		`outbox_backlog_events{state="retrying"}`: "= 1", `outbox_oldest_event_age_seconds{state="retrying"}`: "> 0",
		w.inTopic(`relay_failed_publishes_total{class="rejected",topic="TOPIC"}`): ">= 3",
		`relay_dead_letters_total{reason="max_attempts"}`:                         "= 1", "outbox_max_attempts_events": "= 1",
		"outbox_dead_events":        "= 1",
		"outbox_blocked_aggregates": "= 0", // its contract does not say block
	})
	w.reject("refused-slowly", false)
	w.until(map[string]string{`outbox_backlog_events{state="retrying"}`: "= 0"})
}

func (w *env) unknownType() {
	w.insert("order_of_tomorrow", "unknown", `{"n":1}`)
	w.until(map[string]string{
		"relay_parked_events_total": "= 1", `outbox_backlog_events{state="parked"}`: "= 1",
		`outbox_oldest_event_age_seconds{state="parked"}`: "> 0",
		"relay_alarms_total":                              ">= 1",
	})
	for name, f := range w.look() {
		for series := range f.series {
			if strings.Contains(series, "order_of_tomorrow") {
				w.t.Errorf("%s%s: a type that the registry does not have is a label", name, series)
			}
		}
	}
}

func (w *env) missingTopic() {
	missing := func(series string) string { return strings.ReplaceAll(series, "TOPIC", w.missing) }
	var ids []string
	for i := range 12 {
		ids = append(ids, fmt.Sprint("missing-", i))
	}
	w.until(map[string]string{missing(`relay_topic_paused{topic="TOPIC"}`): "= 0"})
	w.emit(w.lost, ids...)
	w.until(map[string]string{
		missing(`relay_topic_paused{topic="TOPIC"}`): "= 1", w.inTopic(`relay_topic_paused{topic="TOPIC"}`): "= 0",
		missing(`relay_failed_publishes_total{class="topic_fault",topic="TOPIC"}`): ">= 5",
		`outbox_backlog_events{state="ready"}`:                                     "= 12",
	})
	w.makeStream(w.missing)
	w.until(map[string]string{
		missing(`relay_topic_paused{topic="TOPIC"}`):                                   "= 0",
		missing(`relay_published_events_total{topic="TOPIC",event_type="order_lost"}`): "= 12",
		`outbox_backlog_events{state="ready"}`:                                         "= 0",
	})
}

func (w *env) operatorsPause() {
	w.Exec(w.t, "SELECT {schema}.outbox_pause('ada', 'test', 'type', 'order_slow')")
	w.until(map[string]string{
		`outbox_pauses{scope="type"}`: "= 1", `outbox_pauses{scope="topic"}`: "= 0", `outbox_pauses{scope="all"}`: "= 0",
	})
	w.Exec(w.t, "SELECT {schema}.outbox_pause('ada', 'test', 'topic', $1)", w.missing)
	w.Exec(w.t, "SELECT {schema}.outbox_pause('ada', 'test', 'all')")
	w.until(map[string]string{
		`outbox_pauses{scope="type"}`: "= 1", `outbox_pauses{scope="topic"}`: "= 1", `outbox_pauses{scope="all"}`: "= 1",
	})
	w.Exec(w.t, "SELECT {schema}.outbox_resume('ada', 'test', p.scope, p.name) FROM (SELECT scope, name FROM "+
		"{schema}.outbox_pauses OFFSET 0) p")
	w.until(map[string]string{
		`outbox_pauses{scope="type"}`: "= 0", `outbox_pauses{scope="topic"}`: "= 0", `outbox_pauses{scope="all"}`: "= 0",
	})
}

func (w *env) retention() {
	w.until(map[string]string{`outbox_retention_deleted_rows_total{kind="published"}`: "= 0"})
	if _, there := value(w.look(), `outbox_retention_age_seconds{kind="published"}`); there {
		w.t.Error("retention has an age, and never ran")
	}
	w.Exec(w.t, "UPDATE {schema}.outbox_events SET published_at = now() - interval '1 hour' WHERE state = 6")
	many := w.Count(w.t, "SELECT count(*) FROM {schema}.outbox_events WHERE state = 6")
	runner, err := retention.New(w.Pool, retention.Config{
		Schema: w.Schema, Published: 60_000_000_000, Dead: -1, Dedupe: -1,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := runner.Once(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.until(map[string]string{
		`outbox_retention_deleted_rows_total{kind="published"}`: fmt.Sprint("= ", many),
		`outbox_retention_age_seconds{kind="published"}`:        "> 0",
		`outbox_retention_halted{kind="published"}`:             "= 0",
	})
	w.Exec(w.t, "UPDATE {schema}.outbox_retention SET halted_at = now(), halt_reason = 'a test' WHERE kind = 'published'")
	w.until(map[string]string{
		`outbox_retention_halted{kind="published"}`: "= 1", `outbox_retention_halted{kind="dead"}`: "= 0",
	})
}

// laneTaken has another relay take the lane of an event that is being published. Its settle comes too late then, unless
// a read has found out before; so it goes on until one did.
func (w *env) laneTaken() {
	series := w.inTopic(`relay_published_events_total{topic="TOPIC",event_type="order_placed"}`)
	published, _ := value(w.until(map[string]string{"relay_stale_settles_total": "= 0"}), series)
	for stale := 0.0; stale == 0; published++ {
		aggregate := fmt.Sprint("taken-", published)
		lane := int16(w.Count(w.t, "SELECT {schema}.outbox_lane('default', 'order', $1)", aggregate))
		open := w.gate(aggregate)
		w.emit(w.placed, aggregate)
		w.until(map[string]string{"relay_in_flight_events": "= 1"})
		w.Exec(w.t, leases.Steal, []int16{lane})
		open()
		w.until(map[string]string{"relay_lanes": "= 63"})
		w.Exec(w.t, leases.Return)
		families := w.until(map[string]string{"relay_lanes": "= 64", series: fmt.Sprint("= ", published+1)})
		stale, _ = value(families, "relay_stale_settles_total")
		if published > 200 {
			w.t.Fatal("no settle came too late")
		}
	}
}

// anotherRelay is alive and takes none of the lanes that it is left.
func (w *env) anotherRelay() {
	w.Exec(w.t, leases.Join, outbox.NewID().String(), "idle", "1 hour")
	w.until(map[string]string{"outbox_relays": "= 2", "outbox_unheld_lanes": "= 32", "relay_lanes": "= 32"})
	w.Exec(w.t, "UPDATE {schema}.outbox_relays SET ended_at = clock_timestamp() WHERE name = 'idle'")
	w.until(map[string]string{"outbox_relays": "= 1", "outbox_unheld_lanes": "= 0", "relay_lanes": "= 64"})
}

// cancelledReads cancels whatever of the relay waits for a lock, until a read of it has failed.
func (w *env) cancelledReads() {
	for failed := 0.0; failed == 0; {
		w.Exec(w.t,
			`SELECT pg_cancel_backend(pid) FROM pg_stat_activity WHERE application_name = $1 AND wait_event_type = 'Lock'`,
			w.Schema)
		families := w.until(map[string]string{"relay_lanes": ">= 0"})
		failed, _ = value(families, `relay_database_errors_total{call="read"}`)
	}
}

// failingSurvey locks a table for longer than a survey waits, and until a read of the relay has failed.
func (w *env) failingSurvey() {
	w.until(map[string]string{`survey_age_seconds{part="dead"}`: "< 2"})
	tx := w.Begin(w.t)
	if _, err := tx.Exec(w.t.Context(), w.SQL("LOCK TABLE {schema}.outbox_events IN ACCESS EXCLUSIVE MODE")); err != nil {
		w.t.Fatal(err)
	}
	locked := time.Now() // no answer can come after this
	w.until(map[string]string{`survey_failures_total{part="dead"}`: ">= 1"})
	held := time.Since(locked).Seconds()
	families := w.look()
	if age, _ := value(families, `survey_age_seconds{part="dead"}`); age < held {
		w.t.Errorf("the survey says that it is %v s old, and got no answer for %v s", age, held)
	}
	if _, there := value(families, "outbox_dead_events"); !there {
		w.t.Error("what was known is not shown any more")
	}
	w.cancelledReads()
	if err := tx.Rollback(w.t.Context()); err != nil {
		w.t.Fatal(err)
	}
	w.until(map[string]string{`survey_age_seconds{part="dead"}`: "< 2"})
}

// restored makes the database look like a copy of another one, and the relay connect anew.
func (w *env) restored() {
	w.until(map[string]string{"relay_paused": "= 0"})
	w.Exec(w.t, "UPDATE {schema}.outbox_identity SET system_identifier = 1")
	w.Exec(w.t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", w.Schema)
	w.until(map[string]string{"relay_paused": "= 1", "relay_lanes": ">= 0"})
	// Nobody waits here until the lease from before has run out.
	w.Exec(w.t, leases.Expire, relayName)
	w.Exec(w.t, "SELECT {schema}.outbox_resume('ada', 'test', 'restored')")
	w.until(map[string]string{"relay_paused": "= 0", "relay_lanes": "= 64"})
}

// allMoved holds every metric to having had more than one value.
func (w *env) allMoved() {
	families := w.look()
	for _, p := range promises(w.t, "metrics") {
		f := families[p.name]
		if f == nil {
			w.t.Errorf("%s is promised, and not there", p.name)
			continue
		}
		if f.kind != p.kind || f.help != p.help || !slices.Equal(f.labels, p.labels) {
			w.t.Errorf("%s is a %s with %v: %s, promised is a %s with %v: %s", p.name, f.kind, f.labels, f.help, p.kind,
				p.labels, p.help)
		}
		still := p.name == "posthaste_build_info" || p.name == "posthaste_survey_limit_events"
		if len(w.seen[p.name]) < 2 && !still {
			w.t.Errorf("%s has not moved: %v", p.name, w.seen[p.name])
		}
		delete(families, p.name)
	}
	for name := range families {
		w.t.Errorf("%s is there, and not promised", name)
	}
}
