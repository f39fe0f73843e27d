package daemon

import (
	"errors"
	"net"
	"regexp"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/publish"
)

// prefix is what the environment variables begin with.
const prefix = "POSTHASTE_"

// The keys that every program has. What a relay or retention setting may be, they check themselves.
var (
	databaseURL = config.Secret("database.url", config.Spec[config.Hidden]{
		Required: true, Example: "postgres://relay@db.example.com/shop?sslmode=verify-full",
		Doc: "The outbox's database, the primary. On another machine it needs `sslmode=verify-full`.",
	})
	databasePassword = config.Secret("database.password", config.Spec[config.Hidden]{
		Otherwise: "the URL's, or of its `passfile`", Doc: "The password, where it is kept apart from the URL.",
	})
	databaseListenURL = config.Secret("database.listen_url", config.Spec[config.Hidden]{
		Otherwise: "`database.url`",
		Doc:       "A way to the database that does not lead through a pooler, for the doorbell; `off` leaves it to polling.",
	})
	databaseInstallation = config.Text("database.installation", config.Spec[string]{
		Otherwise: "any", Check: checkInstallation, Example: "7d3c1f0e-6a52-4d0f-9a55-0b7c6a1d2e3f",
		Doc: "The outbox that the URL must lead to, as `/readyz?verbose` and `outbox_meta.installation` name it. Another " +
			"one is refused.",
	})
	databaseSchema = config.Text("database.schema", config.Spec[string]{
		Default: "public", Check: notEmpty, Doc: "The schema of the outbox.",
	})

	registryFile = config.Text("registry.file", config.Spec[string]{
		Required: true, Check: notEmpty, Example: "registry.yaml",
		Doc: "The contracts with their JSON Schemas. The log names its hash.",
	})

	// TopicDefault is the topic of contracts that name none.
	TopicDefault = config.Text("topic.default", config.Spec[string]{
		Otherwise: "none: each contract must name one", Doc: "The topic of contracts that name none.",
	})

	messageFormat = config.Choice("message.format", formatNames(), config.Spec[string]{
		Default: string(publish.Envelope),
		Doc: "How messages look: the attributes of an envelope alone, or those of CloudEvents as well. The body is the " +
			"same.",
	})
	messageFormats = config.Map("message.formats", config.Spec[map[string]string]{
		Otherwise: "`message.format` for all", Example: "orders=cloudevents,billing=envelope",
		Doc: "The formats of single topics.",
	})
	messageSource = config.Text("message.source", config.Spec[string]{
		Otherwise: "`/` and the event's namespace", Example: "https://shop.example.com/orders",
		Doc: "The `ce-source` of CloudEvents: a URI, or the path of one, that names the system which emits.",
	})

	relayName = config.Text("relay.name", config.Spec[string]{
		Otherwise: "the host's name and the process id", Doc: "Tells this publisher from the others, for people.",
	})
	relayBatch       = config.Integer("relay.batch", config.Spec[int]{Default: 500, Doc: "Events of one read."})
	relayMaxInFlight = config.Integer("relay.max_in_flight", config.Spec[int]{
		Otherwise: "8 times `relay.batch`", Doc: "Events in memory and not settled.",
	})
	relayMaxBytes = config.Size("relay.max_bytes", config.Spec[int]{
		Default: 64 << 20, Doc: "Payloads in memory and not settled.",
	})
	relayConcurrency = config.Integer("relay.concurrency", config.Spec[int]{Default: 256, Doc: "Publishes at a time."})
	relayPoll        = config.Duration("relay.poll", config.Spec[time.Duration]{
		Default: 500 * time.Millisecond, Doc: "The longest idle sleep, at most a third of the lease.",
	})
	relayLease = config.Duration("relay.lease", config.Spec[time.Duration]{
		Default: 30 * time.Second, Doc: "How long a publisher that died keeps its lanes.",
	})
	relayDeadline = config.Duration("relay.publish_deadline", config.Spec[time.Duration]{
		Otherwise: "a third of `relay.lease`", Doc: "The time of one publish, at most a third of the lease.",
	})
	relayDrain = config.Duration("relay.drain", config.Spec[time.Duration]{
		Default: 20 * time.Second,
		Doc:     "How long a stop waits for what is in flight. What stops the process must wait longer.",
	})
	relayMaxAttempts = config.Integer("relay.max_attempts", config.Spec[int]{
		Default: 10, Doc: "Of an event whose contract sets none.",
	})
	relayBaseDelay = config.Duration("relay.base_delay", config.Spec[time.Duration]{
		Default: time.Second, Doc: "Before the first retry; it doubles.",
	})
	relayMaxDelay = config.Duration("relay.max_delay", config.Spec[time.Duration]{
		Default: 300 * time.Second, Doc: "Between retries.",
	})
	relayUnknownAge = config.Duration("relay.unknown_type_max_age", config.Spec[time.Duration]{
		Default: 24 * time.Hour,
		Doc:     "How long an event of an unknown type stays parked before it is dead. Negative: dead at once.",
	})
	relayFailover = config.Duration("relay.failover_window", config.Spec[time.Duration]{
		Default: 10 * time.Minute,
		Doc: "How long the fleet may have been away when a new primary still counts as a failover and not as a " +
			"restored backup. Negative: never paused.",
	})

	retentionEvery = config.Duration("retention.every", config.Spec[time.Duration]{
		Default: time.Hour,
		Doc:     "How often old rows are deleted. `0s`: never, by this program; then run `outboxctl prune`, at least daily.",
	})
	retentionPublished = config.Duration("retention.published", config.Spec[time.Duration]{
		Default: 720 * time.Hour,
		Doc:     "How long an event is kept after it was published or discarded. `0s`: forever, as for the next two.",
	})
	retentionDead = config.Duration("retention.dead", config.Spec[time.Duration]{
		Default: 2160 * time.Hour, Doc: "How long a dead letter is kept after it was resolved.",
	})
	retentionDedupe = config.Duration("retention.dedupe", config.Spec[time.Duration]{
		Default: 720 * time.Hour, Doc: "How long a dedupe key is kept, and never less than its event.",
	})
	retentionBatch = config.Integer("retention.batch", config.Spec[int]{
		Default: 1000, Doc: "The most rows of one statement.",
	})
	retentionConfirmed = config.Text("retention.confirmed", config.Spec[string]{
		Check: checkTime, Example: "2026-01-31T00:00:00Z",
		Doc: "Up to this time everything may go that is old enough. For when the log says that more would go than time " +
			"alone explains.",
	})

	httpListen = config.Text("http.listen", config.Spec[string]{
		Default: "127.0.0.1:8086", Check: checkListen,
		Doc: "The address of `/livez`, `/readyz` and `/metrics`; empty: none. In a container `:8086`.",
	})

	metricsSurvey = config.Duration("metrics.survey", config.Spec[time.Duration]{
		Default: 15 * time.Second, Check: checkSurvey,
		Doc: "How often the database is asked for what `/metrics` says about the outbox. `0s`: never, and then it says " +
			"nothing about it.",
	})

	logLevel = config.Choice("log.level", []string{"debug", "info", "warn", "error"}, config.Spec[string]{
		Default: "info", Doc: "The least that is logged.",
	})
	logFormat = config.Choice("log.format", []string{"auto", "json", "text"}, config.Spec[string]{
		Default: "auto", Doc: "`auto` is `text` on a terminal, else `json`. One line per record, on standard error.",
	})
	logSample = config.Integer("log.sample_successes", config.Spec[int]{
		Default: 1, Check: config.Between(0, 1_000_000_000),
		Doc: "One line for each so many published events: 1 is all, 0 none. What failed is always logged.",
	})

	// InsecureAllow names what may be on another machine without verified TLS. Programs beside a publisher take the same
	// key, so that one environment serves them all; see [CheckDatabaseURL].
	InsecureAllow = config.List("insecure.allow", config.Spec[[]string]{
		Doc: "What may be on another machine without verified TLS: `database`, a broker's name, or `tracing`. The log " +
			"tells it at every start.",
	})
)

func notEmpty(text string) error {
	if text == "" {
		return errors.New("must not be empty")
	}
	return nil
}

var installationPattern = regexp.MustCompile(`^[0-9A-Fa-f]{8}(-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}$`)

func checkInstallation(text string) error {
	if text != "" && !installationPattern.MatchString(text) {
		return errors.New("must be a UUID")
	}
	return nil
}

func checkTime(text string) error {
	if _, err := time.Parse(time.RFC3339, text); text != "" && err != nil {
		return errors.New("must be a time like 2026-01-31T00:00:00Z")
	}
	return nil
}

func checkListen(address string) error {
	if _, port, err := net.SplitHostPort(address); address != "" && (err != nil || port == "") {
		return errors.New("must be an address like 127.0.0.1:8086 or :8086, or empty")
	}
	return nil
}

func checkSurvey(every time.Duration) error {
	if every < 0 || every > 0 && every < time.Second {
		return errors.New("must be at least 1s, or 0s")
	}
	return nil
}

// keys are all of the program's, in the order of the reference page.
func (p Program) keys() []config.AnyKey {
	keys := []config.AnyKey{
		databaseURL, databasePassword, databaseListenURL, databaseSchema, databaseInstallation, p.brokerKey(),
	}
	if len(p.Brokers) > 1 {
		keys = append(keys, p.brokersKey())
	}
	for _, broker := range p.Brokers {
		keys = append(keys, broker.Keys...)
	}
	if p.Registry == nil {
		if p.NewRegistry == nil {
			keys = append(keys, registryFile)
		}
		keys = append(keys, TopicDefault)
	}
	var metrics []config.AnyKey
	if p.Metrics != nil {
		metrics = append(metrics, metricsSurvey)
	}
	return slices.Concat(keys, p.Keys, []config.AnyKey{
		messageFormat, messageFormats, messageSource,
		relayName, relayBatch, relayMaxInFlight, relayMaxBytes, relayConcurrency, relayPoll, relayLease, relayDeadline,
		relayDrain,
		relayMaxAttempts, relayBaseDelay, relayMaxDelay, relayUnknownAge, relayFailover,
		retentionEvery, retentionPublished, retentionDead, retentionDedupe, retentionBatch, retentionConfirmed,
		httpListen,
	}, metrics, p.tracingKeys(), p.consoleKeys(), []config.AnyKey{logLevel, logFormat, logSample, InsecureAllow})
}
