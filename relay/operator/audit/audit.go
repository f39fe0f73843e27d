// Package audit compares what a broker holds with the table of events: what was published here and is not there, what
// is there and unknown here, and what is there twice; and it accounts for the numbers that the sequence gave out. It
// changes nothing, and the grants of the viewer role are enough.
//
// What a broker holds comes through [Broker]. The order in which it comes does not matter: messages are sorted by their
// ids, on disk where they are many, and laid beside the events, which an index has in the same order. So memory is
// bounded, every message and every event of the window is looked at once, and a copy is found however late it came.
package audit

import (
	"context"
	"embed"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

//go:embed sql/*.sql
var files embed.FS

// A Message is one that the broker holds.
type Message struct {
	// ID is the event's, as the attribute event_id has it. Zero: the message carries none.
	ID outbox.ID
	// At is when the broker took it, by its clock.
	At    time.Time
	Topic string
	Type  string
	// Seq is the event's number, as outbox_seq has it; 0: it carries none.
	Seq int64
	// Copy tells that somebody asked for it: it carries the attribute redelivered.
	Copy bool
	// Key is the broker's own name of the message, where it may show one message several times. Empty: each that it shows
	// is another one.
	Key string
}

// An Extent is what a broker can show.
type Extent struct {
	// FromNow: it shows what comes from now on, and nothing before.
	FromNow bool
	// Messages is about how many there are to read; 0: it cannot say.
	Messages int64
}

// A Broker shows what it holds.
type Broker interface {
	// Open prepares to read what the broker took from a moment on, and says what it can show of that.
	Open(ctx context.Context, from time.Time) (Extent, error)
	// Read hands over every message that the broker has taken since then, at least up to when it calls mark: it does so
	// once, when what comes later may be left out. It ends at the first error of mark or each. It answers from when on the
	// broker has shown all that it took, topic by topic, since one that is seldom used may hold less than others, and what
	// goes while it reads is not shown. A topic without an answer: from the moment that was asked for, or before.
	Read(ctx context.Context, mark func(context.Context) error, each func(Message) error) (map[string]time.Time, error)
}

// DB is a *pgxpool.Pool or *pgx.Conn.
type DB interface {
	BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error)
}

// Config says what is compared.
type Config struct {
	// Schema is where the outbox is. Defaults to "public".
	Schema string
	// Since is how long ago the oldest events were made that are compared, by the time in their ids. Defaults to 24 h.
	Since time.Duration
	// Until is when the newest of them were made. Defaults to now.
	Until time.Time
	// Topics are those that the broker shows. An event that was published must be there if its type goes to these and to
	// no others, as the relays know it.
	Topics []string
	// AllTypes: every published event must be there, also of types that no relay knows.
	AllTypes bool
	// Slack is by how much clocks may differ, and how much later than the broker's acknowledgement an event may be
	// settled: what was published within it after the begin is not looked for. Defaults to 2 min; negative: none.
	Slack time.Duration
	// InMemory is how many messages are kept in memory; what is more goes to files. Defaults to 500,000.
	InMemory int
	// Found is called for each finding, as it is found. Defaults to nobody.
	Found func(Finding) error
	// Progress is called about once per second. Defaults to nobody.
	Progress func(Progress)
}

// The kinds of findings.
const (
	// Missing is an event that is published here and not there.
	Missing = "missing"
	// Unknown is a message that is there and of no event here.
	Unknown = "unknown"
	// Twice is an event that is there more than once without anybody having asked for it. That is no loss: delivery is at
	// least once.
	Twice = "twice"
	// Gap is a range of numbers that were drawn, and that neither an event has nor retention has deleted. A transaction
	// that was rolled back leaves one, and so does a row that somebody deleted.
	Gap = "gap"
)

// A Finding is one thing that differs.
type Finding struct {
	Kind string `json:"kind"`
	// Event is the event's id. Of a gap, and of a message that carries none, there is none.
	Event *outbox.ID `json:"event,omitempty"`
	// Seq is the event's number; of a gap the first, and Last the last.
	Seq  int64  `json:"seq,omitempty"`
	Last int64  `json:"last,omitempty"`
	Type string `json:"type,omitempty"`
	// Topic is where the first of its messages is; of a missing event where its type goes, by the relay that started last.
	Topic string `json:"topic,omitempty"`
	// At is when the broker took the first of its messages; of a missing event when it was published.
	At *time.Time `json:"at,omitempty"`
	// Times is how often it is there.
	Times int `json:"times,omitempty"`
	// Why is what else is known, in words.
	Why string `json:"why,omitempty"`
}

// A Report is what a comparison came to.
type Report struct {
	// From and To are between when the events were made that were compared. To is also up to when what was published here
	// must be there.
	From time.Time `json:"from"`
	To   time.Time `json:"to"`
	// Held is from when on the broker could show messages of every topic.
	Held   time.Time `json:"held"`
	Topics []string  `json:"topics"`
	// Messages is how many were read, Copies how many of them somebody had asked for.
	Messages int64 `json:"messages"`
	Copies   int64 `json:"copies"`
	// Tests is how many of them only asked whether the broker takes something.
	Tests int64 `json:"tests"`
	// Events is how many of the window were looked at, Matched how many published ones were found there.
	Events  int64 `json:"events"`
	Matched int64 `json:"matched"`
	// What was found. Twice counts events.
	Missing int64 `json:"missing"`
	Unknown int64 `json:"unknown"`
	Twice   int64 `json:"twice"`
	// Unsure is how many of the missing were published while a relay was there that has ended since: it may have known
	// another topic than those that are read. Their findings say why.
	Unsure int64 `json:"unsure"`
	// What cannot be compared, and is no finding: events that are there and not settled as published here; messages whose
	// events retention has deleted; published events from before the broker shows anything, or within the slack; those of
	// types that go, also or only, to topics that are not read, or nobody knows where.
	Unsettled   int64 `json:"unsettled"`
	Pruned      int64 `json:"pruned"`
	Beyond      int64 `json:"beyond"`
	OtherTopics int64 `json:"otherTopics"`
}

// Clean tells that nothing is missing and nothing unknown.
func (r Report) Clean() bool { return r.Missing == 0 && r.Unknown == 0 }

// Progress is how far an audit is.
type Progress struct {
	// Step is reading, comparing or counting.
	Step string
	// Done and Of are messages, events or numbers; Of is 0 where nobody knows.
	Done, Of int64
	Begun    time.Time
}

// The bounds.
const (
	usualSince    = 24 * time.Hour
	usualSlack    = 2 * time.Minute
	usualInMemory = 500_000
	// pageSize is how many events are read at a time, and of how many ids of messages at most that are not among them.
	pageSize  = 2_000
	mostLoose = 2_000
	// statementTimeout ends a statement on a server that has no time. Each is bounded by itself.
	statementTimeout = "30s"
)

// ErrNoWindow is for an audit of no time at all, which would find nothing.
var ErrNoWindow = errors.New("the newest events that shall be compared are older than the oldest")

// ErrNoTopics is for an audit of which nobody knows what topics to look at.
var ErrNoTopics = errors.New("no relay is there that knows which topics events go to, and none is named")

// Run compares.
func Run(ctx context.Context, db DB, broker Broker, config Config) (Report, error) {
	a := &audit{table: table{db: db, schema: config.Schema}, config: config.withDefaults()}
	a.table.schema = a.config.Schema
	report, err := a.run(ctx, broker)
	if err != nil {
		return report, fmt.Errorf("audit: %w", a.table.said(err))
	}
	return report, nil
}

func (c Config) withDefaults() Config {
	if c.Schema == "" {
		c.Schema = outbox.DefaultSchema
	}
	if c.Since == 0 {
		c.Since = usualSince
	}
	if c.Slack == 0 {
		c.Slack = usualSlack
	}
	c.Slack = max(c.Slack, 0)
	if c.InMemory == 0 {
		c.InMemory = usualInMemory
	}
	if c.Found == nil {
		c.Found = func(Finding) error { return nil }
	}
	if c.Progress == nil {
		c.Progress = func(Progress) {}
	}
	return c
}

// table is the outbox, for somebody who only looks.
type table struct {
	db     DB
	schema string
}

// said says what to do about an error of the database.
func (t table) said(err error) error {
	if sqlstate.PermissionDenied(err) {
		return fmt.Errorf("%w; run `outboxctl grant viewer <role>`", err)
	}
	return err
}

// look runs a few statements in one snapshot.
func (t table) look(ctx context.Context, query func(tx pgx.Tx, now time.Time) error) error {
	tx, err := t.db.BeginTx(ctx, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly})
	if err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	var now time.Time
	if err := tx.QueryRow(ctx, t.sql("begin"), statementTimeout).Scan(&now); err != nil {
		return fmt.Errorf("begin: %w", err)
	}
	return query(tx, now)
}

// now is the database's clock.
func (t table) now(ctx context.Context) (now time.Time, err error) {
	err = t.look(ctx, func(_ pgx.Tx, at time.Time) error { now = at; return nil })
	return now, err
}

func (t table) sql(name string) string {
	text, err := files.ReadFile("sql/" + name + ".sql")
	if err != nil {
		panic(err) // it is embedded
	}
	return sqltext.In(t.schema, sqltext.Bare(string(text)))
}

// meter calls Progress about once per second.
type meter struct {
	report     func(Progress)
	step       string
	begun, now time.Time
}

func newMeter(report func(Progress), step string) *meter {
	return &meter{report: report, step: step, begun: time.Now(), now: time.Now()}
}

func (m *meter) at(done, of int64) {
	if time.Since(m.now) < time.Second {
		return
	}
	m.now = time.Now()
	m.report(Progress{Step: m.step, Done: done, Of: of, Begun: m.begun})
}
