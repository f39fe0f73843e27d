package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/survey"
)

// Config says what a relay reads, what it knows and where it publishes. Only Database, Registry and
// Publisher are required.
type Config struct {
	Settings

	// Database is the URL of the outbox's database. The relay needs the primary.
	Database string
	// ListenDatabase is a URL that does not lead through a pooler, for the doorbell. Defaults to Database;
	// "off" leaves the relay to its polling.
	ListenDatabase string
	// BeforeConnect is called before every connection to the database, as that of pgxpool is, and may change what
	// connects: for passwords and certificates that are rotated. Where it must lead to is not for it to change. An
	// error is an outage of the database. It is called by several goroutines. Defaults to nothing.
	BeforeConnect func(ctx context.Context, config *pgx.ConnConfig) error
	// Schema is where the outbox is. Defaults to "public".
	Schema string
	// Installation is the id of the outbox that Database must lead to, as outbox_meta has it. On another
	// one Run fails. Defaults to any.
	Installation string
	// Registry is what the relay may publish.
	Registry *outbox.Registry
	// Publisher is where it publishes.
	Publisher publish.Publisher
	// Publishers are those of single topics, so that one relay serves several brokers. What is sent again to a topic that
	// no contract has goes to Publisher. Defaults to Publisher for all.
	Publishers map[string]publish.Publisher
	// Format is how messages look. Defaults to Envelope.
	Format publish.Format
	// Formats are those of single topics. Defaults to Format for all.
	Formats map[string]publish.Format
	// Source is the ce-source of CloudEvents: a URI, or the path of one, that names the system which emits. Defaults to
	// "/" and the event's namespace.
	Source string
	// Name tells this relay from the others, for people. Defaults to the host's name and the process id.
	Name string
	// Version is the version of the application, for people.
	Version string
	// Logger takes what the relay has to say. Defaults to slog.Default().
	Logger *slog.Logger
	// LogPublished writes one line for each published event as well. Defaults to false: only what failed.
	LogPublished bool
	// SamplePublished thins these lines out: one for each so many published events, with sampled=N. Defaults to 1.
	SamplePublished int
	// Observe is told every step the relay takes, for traces and proofs. It is called from the relay's one
	// loop and must not block. Defaults to nobody.
	Observe func(Step)
	// SurveyEvery is how often the tables are asked for their backlog, for metrics: see [Relay.Survey]. At least a
	// second. Defaults to never.
	SurveyEvery time.Duration
}

// Relay moves events. Make one with [New] and [Relay.Run] it.
type Relay struct {
	config Config
	counts atomic.Pointer[core.Counts]
	hold   atomic.Pointer[RestoreHold]
	pulse  pulse
	paused pausedTopics

	standing standing
	survey   *survey.Surveyor
}

// New checks the configuration and makes a relay. It does not connect.
func New(config Config) (*Relay, error) {
	config.Settings = config.withDefaults()
	problems := config.problems()
	if config.Database == "" {
		problems = append(problems, errors.New("the Database is missing: give the URL of the outbox's database"))
	}
	if config.Registry == nil {
		problems = append(problems, errors.New("the Registry is missing: make one with outbox.NewRegistry"))
	}
	problems = append(problems, config.publisherProblems()...)
	if config.Format == "" {
		config.Format = publish.Envelope
	}
	problems = append(problems, config.formatProblems()...)
	if every := config.SurveyEvery; every < 0 || every > 0 && every < time.Second {
		problems = append(problems, fmt.Errorf("SurveyEvery: %s, must be at least 1 s, or zero: never", every))
	}
	if len(problems) > 0 {
		return nil, fmt.Errorf("relay: %w", errors.Join(problems...))
	}
	if config.ListenDatabase == "" {
		config.ListenDatabase = config.Database
	}
	if config.Schema == "" {
		config.Schema = "public"
	}
	if config.Logger == nil {
		config.Logger = slog.Default()
	}
	if config.Name == "" {
		host, err := os.Hostname()
		if err != nil {
			host = "relay"
		}
		config.Name = fmt.Sprintf("%s-%d", host, os.Getpid())
	}
	r := &Relay{config: config, pulse: pulse{began: time.Now()}}
	r.counts.Store(&core.Counts{})
	r.survey = survey.New(survey.Config{
		Schema: config.Schema, Every: config.SurveyEvery, Registry: config.Registry, MaxAttempts: config.MaxAttempts,
		Logger: config.Logger,
	})
	return r, nil
}

// Stats returns the counters. It may be called at any time.
func (r *Relay) Stats() Stats { return Stats(*r.counts.Load()) }

// Survey returns what was last found in the outbox's tables. It may be called at any time; see [Config.SurveyEvery].
func (r *Relay) Survey() survey.Report { return r.survey.Report() }

// Settings are the relay's limits and times. The zero value of each means its default.
type Settings struct {
	Batch       int           // events of one read; 500
	MaxInFlight int           // events in memory and not settled; 8 batches
	MaxBytes    int           // bytes in memory and not settled; 64 MiB
	Concurrency int           // publishes at a time; 256
	Poll        time.Duration // the longest idle sleep; 500 ms
	Lease       time.Duration // 30 s
	Deadline    time.Duration // of one publish; a third of the lease
	Drain       time.Duration // how long a stop waits for what is in flight; 20 s
	MaxAttempts int           // of an event whose contract sets none; 10
	BaseDelay   time.Duration // before the first retry; 1 s
	MaxDelay    time.Duration // between retries; 300 s
	// UnknownTypeMaxAge is how long an event of an unknown type stays parked before it is dead; 24 h. Negative:
	// dead at once.
	UnknownTypeMaxAge time.Duration
	// FailoverWindow is how long before a change of timeline the fleet must have been seen for it to be a failover;
	// 10 min. After a longer gap the database counts as restored, and the relay pauses. Negative: it never pauses,
	// also not on a copy.
	FailoverWindow time.Duration
}

// margin is what is kept free at the end of a lease, and how long a decision to publish holds.
func (s Settings) margin() time.Duration { return s.Lease / 30 }

// longestTime is more than anybody can mean.
const longestTime = 366 * 24 * time.Hour

// The times that are not settings.
const (
	fencePeriod = 250 * time.Millisecond
	heldPeriod  = time.Second
	sweepPeriod = 30 * time.Second
	minPoll     = 4 * time.Millisecond
	minStay     = 15 * time.Second
)

// readWindow is how many numbers a read looks at: rows that are settled there cost a microsecond each.
const readWindow = 50_000

// heldPage is how many held rows one look takes: of lines 16 microseconds each, of parked rows 3.
const heldPage = 5_000

func (s Settings) withDefaults() Settings {
	fill(&s.Batch, 500)
	fill(&s.MaxInFlight, 8*s.Batch)
	fill(&s.MaxBytes, 64<<20)
	fill(&s.Concurrency, 256)
	fill(&s.Poll, 500*time.Millisecond)
	fill(&s.Lease, 30*time.Second)
	fill(&s.Deadline, s.Lease/3)
	fill(&s.Drain, 20*time.Second)
	fill(&s.MaxAttempts, 10)
	fill(&s.BaseDelay, time.Second)
	fill(&s.MaxDelay, 300*time.Second)
	fill(&s.UnknownTypeMaxAge, 24*time.Hour)
	fill(&s.FailoverWindow, 10*time.Minute)
	return s
}

func fill[T int | time.Duration](value *T, otherwise T) {
	if *value == 0 {
		*value = otherwise
	}
}

// problems lists what is wrong with the settings.
func (s Settings) problems() []error {
	var problems []error
	invalid := func(bad bool, format string, args ...any) {
		if bad {
			problems = append(problems, fmt.Errorf(format, args...))
		}
	}
	invalid(s.Batch < 1 || s.Batch > 10_000, "Batch: %d, must be between 1 and 10000", s.Batch)
	invalid(s.MaxInFlight < s.Batch, "MaxInFlight: %d, must not be less than Batch (%d)", s.MaxInFlight, s.Batch)
	invalid(s.MaxBytes < 1<<20, "MaxBytes: %d, must be at least 1 MiB", s.MaxBytes)
	invalid(s.Concurrency < 1, "Concurrency: %d, must be at least 1", s.Concurrency)
	invalid(s.Lease < time.Second, "Lease: %s, must be at least 1 s", s.Lease)
	invalid(s.Poll < time.Millisecond || s.Poll > s.Lease/3,
		"Poll: %s, must be at least 1 ms and at most a third of the lease (%s)", s.Poll, s.Lease)
	invalid(s.Deadline < 10*time.Millisecond || s.Deadline > s.Lease/3,
		"Deadline: %s, must be at least 10 ms and at most a third of the lease (%s)", s.Deadline, s.Lease)
	invalid(s.Drain < 0, "Drain: %s, must not be negative", s.Drain)
	invalid(max(s.Lease, s.Drain, s.BaseDelay, s.MaxDelay) > longestTime,
		"Lease, Drain, BaseDelay, MaxDelay: must not be longer than a year")
	invalid(s.MaxAttempts < 1, "MaxAttempts: %d, must be at least 1", s.MaxAttempts)
	invalid(s.BaseDelay < 0 || s.MaxDelay < s.BaseDelay,
		"BaseDelay and MaxDelay: %s and %s, must not be negative and in this order", s.BaseDelay, s.MaxDelay)
	return problems
}
