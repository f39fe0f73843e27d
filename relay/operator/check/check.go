// Package check says for a monitoring system how an outbox stands: a few numbers, each with its limits, and the worst
// of them. The numbers are those of a survey, with its bounds.
package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/shell"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/relay/survey"
	"github.com/posthaste-dev/posthaste/schema"
)

// State is how something stands; the numbers are the exit codes that Nagios prescribes.
type State int

// The states, better ones first but for Unknown.
const (
	OK State = iota
	Warning
	Critical
	Unknown
)

// String is the state as monitoring systems call it.
func (s State) String() string {
	return []string{"ok", "warning", "critical", "unknown"}[s]
}

// MarshalText is the same for JSON.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// None is no limit.
const None = -1

// Limits are from when on a number is bad: more than Warn or more than Crit. None: never.
type Limits struct {
	Warn float64 `json:"warn"`
	Crit float64 `json:"crit"`
}

// Config says what is asked, and the limits. There are no defaults: [Defaults] has them.
type Config struct {
	// Schema is where the outbox is. Defaults to "public".
	Schema string
	// Age is of the oldest event that is ready, Held of the oldest that is retried, parked or waits behind another, in
	// seconds.
	Age, Held Limits
	// Pending is how many events are ready, Dead how many are dead, Blocked how many aggregates a dead one blocks.
	Pending, Dead, Blocked Limits
	// Unheld is how many lanes no live relay holds, Paused how much operators have paused, Failing how many topics relays
	// have paused because publishing fails.
	Unheld, Paused, Failing Limits
	// Relays is how many must be alive at least.
	Relays Limits
}

// Defaults are limits for a start.
func Defaults() Config {
	return Config{
		Age: Limits{60, 600}, Held: Limits{900, 86400}, Pending: Limits{None, None}, Dead: Limits{0, 100},
		Blocked: Limits{0, 10}, Unheld: Limits{0, 16}, Paused: Limits{0, None}, Failing: Limits{0, None},
		Relays: Limits{1, 1},
	}
}

// A Check is one number.
type Check struct {
	Limits

	Name  string  `json:"check"`
	State State   `json:"state"`
	Value float64 `json:"value"`
	// Unit is "s" for seconds, else empty.
	Unit string `json:"unit,omitempty"`
	// AtLeast says that the limits are from below.
	AtLeast bool `json:"atLeast,omitempty"`
	// Text says it in words.
	Text string `json:"text"`
}

// A Result is all of them.
type Result struct {
	State  State   `json:"state"`
	Checks []Check `json:"checks"`
}

// Run asks, and compares. What could not be asked is Unknown; nothing is an error.
func Run(ctx context.Context, pool *pgxpool.Pool, config Config) Result {
	if config.Schema == "" {
		config.Schema = outbox.DefaultSchema
	}
	var result Result
	version := checkSchema(ctx, pool, config.Schema)
	result = result.with(version)
	if version.State != Unknown && version.State != Critical {
		failing, excuses := checkTopics(ctx, pool, config)
		report, failures := survey.Look(ctx, pool, survey.Config{Schema: config.Schema, Topics: excuses})
		moved, err := operator.New(pool, config.Schema).Restored(ctx)
		restored := checkRestored(config.Schema, moved, err)
		for _, check := range fromSurvey(config, report, failures) {
			if check.Name == "relays" && report.Relays == 0 && restored.Value > 0 {
				check.Text += ", but those that wait for the resume do not show"
			}
			result = result.with(check)
		}
		result = result.with(failing).with(restored)
	}
	return result
}

// excused is for a critical age of which a pause or a topic that fails is the reason: there is a check for each of
// these. So it is critical only if the age of what is neither is, and that is what it says then.
func (c Check) excused(report survey.Report, others time.Duration) Check {
	if report.Pauses.All > 0 {
		others = 0
	}
	switch {
	case others.Seconds() == c.Value:
	case others.Seconds() > c.Crit:
		c.Text += ", and of those that are not paused and whose topic does not fail " +
			others.Round(time.Second).String()
	default:
		c.State = Warning
		c.Text += ", which is paused or whose topic fails"
	}
	return c
}

// with takes one in, and keeps the worst state. What is not known is not worse than what is known to be critical.
func (r Result) with(check Check) Result {
	r.Checks = append(r.Checks, check)
	severity := map[State]int{OK: 0, Warning: 1, Unknown: 2, Critical: 3}
	if severity[check.State] > severity[r.State] {
		r.State = check.State
	}
	return r
}

// unknown is a check that could not be made, and why.
func (c Check) unknown(why error) Check {
	c.State, c.Text = Unknown, clean.Error(why)
	if errors.Is(why, context.DeadlineExceeded) {
		c.Text = "no answer in time"
	}
	return c
}

// compare finds the state of a number.
func (c Check) compare() Check {
	beyond := func(limit float64) bool {
		if c.AtLeast {
			return limit != None && c.Value < limit
		}
		return limit != None && c.Value > limit
	}
	switch {
	case beyond(c.Crit):
		c.State = Critical
	case beyond(c.Warn):
		c.State = Warning
	}
	return c
}

// checkSchema compares the version of the tables with what this program knows.
func checkSchema(ctx context.Context, pool *pgxpool.Pool, name string) Check {
	check := Check{Name: "schema", Limits: Limits{None, None}}
	migrations, err := schema.Outbox.Migrations()
	if err != nil {
		return check.unknown(err)
	}
	newest := migrations[len(migrations)-1].Version
	var version int64
	err = pool.QueryRow(ctx, "SELECT schema_version FROM "+pgx.Identifier{name, "outbox_meta"}.Sanitize()).Scan(&version)
	check.Value = float64(version)
	switch code := sqlstate.Of(err); {
	case code == sqlstate.UndefinedTable, code == sqlstate.InvalidSchemaName:
		check.State = Critical
		check.Text = "there is no outbox in schema " + name + ": run '" + command(name, "migrate up") + "'"
	case code == sqlstate.InsufficientPrivilege:
		check.State, check.Text = Unknown, "the role may not look: run '"+command(name, "grant viewer ROLE")+"'"
	case err != nil:
		return check.unknown(err)
	case version != newest:
		check.State = Warning
		check.Text = fmt.Sprintf("the tables are at version %d, this outboxctl knows %d", version, newest)
	default:
		check.Text = fmt.Sprintf("version %d", version)
	}
	return check
}

// command is one of outboxctl about the outbox in a schema.
func command(schema, words string) string {
	if schema != outbox.DefaultSchema {
		words += " --schema " + shell.Word(schema)
	}
	return "outboxctl " + words
}

// fromSurvey makes the checks of what a survey has found.
func fromSurvey(config Config, report survey.Report, failed map[string]error) (checks []Check) {
	add := func(part string, check Check) {
		if why, bad := failed[part]; bad {
			check = check.unknown(why)
		} else {
			check = check.compare()
		}
		switch {
		case check.State != Critical:
		case check.Name == "age":
			check = check.excused(report, report.ReadyTopics[""].Oldest)
		case check.Name == "held_age":
			check = check.excused(report, report.HeldTopics[""].Oldest)
		}
		checks = append(checks, check)
	}
	held := max(report.Retrying.Oldest, report.Parked.Oldest, report.Waiting.Oldest)
	add("ready", Check{
		Name: "age", Value: report.Ready.Oldest.Seconds(), Unit: "s", Limits: config.Age,
		Text: "the oldest event that is ready is " + report.Ready.Oldest.Round(time.Second).String() + " old",
	})
	add("ready", Check{
		Name: "pending", Value: float64(report.Ready.Events), Limits: config.Pending,
		Text: counted(report.Ready.Events) + " events are ready",
	})
	add("held", Check{
		Name: "held_age", Value: held.Seconds(), Unit: "s", Limits: config.Held,
		Text: fmt.Sprintf("%s events are retried, %s parked, %s wait behind others, the oldest for %s",
			counted(report.Retrying.Events), counted(report.Parked.Events), counted(report.Waiting.Events),
			held.Round(time.Second)),
	})
	add("dead", Check{
		Name: "dead", Value: float64(report.Dead.Events), Limits: config.Dead, Text: counted(report.Dead.Events) + " " +
			"events are dead",
	})
	add("dead", Check{
		Name: "blocked", Value: float64(report.BlockedAggregates), Limits: config.Blocked,
		Text: counted(report.BlockedAggregates) + " aggregates are blocked by a dead event",
	})
	add("fleet", Check{
		Name: "relays", Value: float64(report.Relays), Limits: config.Relays, AtLeast: true,
		Text: fmt.Sprintf("%d relays are alive", report.Relays),
	})
	add("fleet", Check{
		Name: "unheld", Value: float64(report.UnheldLanes), Limits: config.Unheld,
		Text: fmt.Sprintf("no live relay holds %d lanes", report.UnheldLanes),
	})
	paused := report.Pauses.All + report.Pauses.Topics + report.Pauses.Types
	add("fleet", Check{
		Name: "paused", Value: float64(paused), Limits: config.Paused,
		Text: fmt.Sprintf("operators have paused %d things", paused),
	})
	return append(checks, checkRetention(report, failed["retention"]))
}

// counted marks a number behind which nobody has counted.
func counted(events int64) string {
	if events >= survey.Limit {
		return fmt.Sprintf("≈%d or more", survey.Limit)
	}
	return fmt.Sprint(events)
}

// checkRetention: it does not refuse to run.
func checkRetention(report survey.Report, failed error) Check {
	check := Check{Name: "retention_halted", Limits: Limits{0, None}}
	var halted []string
	for _, kind := range report.Retention {
		if kind.Halted {
			halted = append(halted, kind.Kind)
		}
	}
	check.Value, check.Text = float64(len(halted)), "retention runs"
	if len(halted) > 0 {
		check.Text = "retention deletes nothing of " + strings.Join(halted, ", ")
	}
	if failed != nil {
		return check.unknown(failed)
	}
	return check.compare()
}

// checkRestored: relays publish nothing on a database that was restored or copied, until somebody resumes them.
func checkRestored(schema string, restored bool, err error) Check {
	check := Check{Name: "restored", Limits: Limits{None, 0}, Text: "the database is where relays left it"}
	if err != nil {
		return check.unknown(err)
	}
	if restored {
		check.Value = 1
		check.Text = "the database was restored or copied, and relays publish nothing before " +
			command(schema, `resume --restored --reason "..."`)
	}
	return check.compare()
}

// checkTopics counts the topics that fail, and says which types wait for a reason that has a check of its own.
func checkTopics(ctx context.Context, pool *pgxpool.Pool, config Config) (check Check, excuses map[string]string) {
	check = Check{Name: "failing", Limits: config.Failing}
	op := operator.New(pool, config.Schema)
	topics, err := op.Topics(ctx)
	pauses, pausesErr := op.Pauses(ctx)
	if err = cmp.Or(err, pausesErr); err != nil {
		return check.unknown(err), nil
	}
	var failing []string
	for _, topic := range topics {
		if len(topic.Failing) > 0 {
			failing = append(failing, topic.Name)
		}
	}
	check.Value, check.Text = float64(len(failing)), "no topic fails"
	if len(failing) > 0 {
		check.Text = "publishing fails to " + strings.Join(failing, ", ")
	}
	return check.compare(), operator.Excuses(topics, pauses)
}
