package prometheus

import (
	client "github.com/prometheus/client_golang/prometheus"
)

// metric is a name that dashboards and alerts rely on. It never changes its meaning, type or labels;
// docs/reference/metrics.md lists all of them.
type metric struct {
	name   string
	kind   string // counter, gauge or histogram
	labels []string
	help   string
	desc   *client.Desc
}

func define(kind, name, help string, labels ...string) *metric {
	return &metric{name: name, kind: kind, labels: labels, help: help, desc: client.NewDesc(name, help, labels, nil)}
}

// What this relay does and has done.
var (
	buildInfo = define("gauge", "posthaste_build_info", "1, with the versions of the program and of Go.", "version",
		"go_version")

	lanesHeld = define("gauge", "posthaste_relay_lanes", "Lanes that this relay holds, of 64.")
	inFlight  = define("gauge", "posthaste_relay_in_flight_events", "Events that this relay has read and not settled.")
	published = define("counter", "posthaste_relay_published_events_total",
		"Events acknowledged by the broker and settled as published.", "topic", "event_type")
	failed = define("counter", "posthaste_relay_failed_publishes_total",
		"Publishes that failed, by whose fault it is.", "topic", "class")
	parked      = define("counter", "posthaste_relay_parked_events_total", "Events that were parked.")
	deadLetters = define("counter", "posthaste_relay_dead_letters_total", "Dead letters written, by their error_reason.",
		"reason")
	staleSettles = define("counter", "posthaste_relay_stale_settles_total",
		"Settles that found a lane taken by another relay and changed nothing.")
	topicPaused = define("gauge", "posthaste_relay_topic_paused",
		"1 while the topic is paused because it fails: nothing is published but probes.", "topic")
	relayPaused = define("gauge", "posthaste_relay_paused",
		"1 while the relay holds still because the database was restored or copied, or came without its sequence.")
	databaseFail = define("counter", "posthaste_relay_database_errors_total", "Calls of the database that failed.", "call")
	alarms       = define("counter", "posthaste_relay_alarms_total", "Alarms: the log has a line for each.")
	watermarkLag = define("gauge", "posthaste_relay_watermark_lag_events",
		"Numbers drawn above the watermark, below which no event can appear any more.")
	oldestWriter = define("gauge", "posthaste_relay_oldest_writer_age_seconds",
		"For how long the oldest open transaction that has emitted was seen open.")

	publishDuration = define("histogram", "posthaste_relay_publish_duration_seconds",
		"From handing an event to the publisher to the acknowledgement.", "topic")
	settleDuration = define("histogram", "posthaste_relay_settle_duration_seconds",
		"From the decision about an event until the database has it.")
	commitToPublish = define("histogram", "posthaste_relay_commit_to_publish_seconds",
		"From an event's created_at until it is settled as published, by the database's clock.", "topic")
)

// What was found in the outbox, which is the same for every relay.
var (
	backlog = define("gauge", "posthaste_outbox_backlog_events",
		"Events that are not published and not dead. At the survey's limit: at least so many.", "state")
	oldestAge = define("gauge", "posthaste_outbox_oldest_event_age_seconds",
		"The age of the oldest event in this state; 0: there is none.", "state")
	deadEvents = define("gauge", "posthaste_outbox_dead_events",
		"Events that are dead and that nobody has redriven or discarded. At the survey's limit: at least so many.")
	maxAttempts = define("gauge", "posthaste_outbox_max_attempts_events",
		"Dead events that have had all their attempts.")
	blockedAggregates = define("gauge", "posthaste_outbox_blocked_aggregates",
		"Aggregates with a dead event whose contract says block: later events of theirs on its topic wait, if there are "+
			"any.")
	unheldLanes = define("gauge", "posthaste_outbox_unheld_lanes", "Lanes that no relay holds.")
	relays      = define("gauge", "posthaste_outbox_relays", "Relays that are alive.")
	pauses      = define("gauge", "posthaste_outbox_pauses",
		"Pauses by operators that stand, by what they are about.", "scope")
	retentionDeleted = define("counter", "posthaste_outbox_retention_deleted_rows_total",
		"Rows that retention has deleted since the beginning.", "kind")
	retentionAge = define("gauge", "posthaste_outbox_retention_age_seconds",
		"Time since retention last ran and was not halted.", "kind")
	retentionHalted = define("gauge", "posthaste_outbox_retention_halted",
		"1 while retention is halted: it deletes nothing, because it would be too much.", "kind")

	surveyAge = define("gauge", "posthaste_survey_age_seconds",
		"Time since the survey last asked and had an answer: the age of the numbers about the outbox.", "part")
	surveyDuration = define("gauge", "posthaste_survey_duration_seconds", "How long that answer took.", "part")
	surveyFailures = define("counter", "posthaste_survey_failures_total",
		"Statements of the survey that failed or took too long.", "part")
	surveyLimit = define("gauge", "posthaste_survey_limit_events", "How far the survey counts.")
)

// What a program's consumers do.
var (
	consumerEvents = define("counter", "posthaste_consumer_events_total", "What became of events, counted at every try.",
		"consumer", "event_type", "outcome")
	consumerDuration = define("histogram", "posthaste_consumer_handle_duration_seconds",
		"How long a run of a handler took, whatever came of it.", "consumer")
	consumerAge = define("histogram", "posthaste_consumer_created_to_handled_seconds",
		"From an event's created_at until it was handled, by two clocks.", "consumer")
)

// ofConsumers are their names, in the order of docs/reference/metrics.md.
var ofConsumers = []*metric{consumerEvents, consumerDuration, consumerAge}

// all are the names of a relay's, in the order of docs/reference/metrics.md.
var all = []*metric{
	buildInfo, lanesHeld, inFlight, published, failed, parked, deadLetters, staleSettles, topicPaused, relayPaused,
	databaseFail, alarms,
	watermarkLag, oldestWriter, publishDuration, settleDuration, commitToPublish,
	backlog, oldestAge, deadEvents, maxAttempts, blockedAggregates, unheldLanes, relays, pauses, retentionDeleted,
	retentionAge, retentionHalted,
	surveyAge, surveyDuration, surveyFailures, surveyLimit,
}

// The buckets, in seconds.
var (
	durations = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	latencies = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 900, 3600}
)

func (m *metric) counter() *client.CounterVec {
	return client.NewCounterVec(client.CounterOpts{Name: m.name, Help: m.help}, m.labels)
}

func (m *metric) histogram(buckets []float64) *client.HistogramVec {
	return client.NewHistogramVec(client.HistogramOpts{Name: m.name, Help: m.help, Buckets: buckets}, m.labels)
}
