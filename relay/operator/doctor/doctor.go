// Package doctor looks for what is broken around an outbox: from the name of the server to the plans of the hot
// statements. It changes nothing. Each [Finding] says what is wrong, why that matters, and what ends it, word by word
// where that can be; docs/operate/doctor.md lists all of them.
package doctor

import (
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/shell"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

//go:embed sql/*.sql
var files embed.FS

// Severity is how bad a finding is.
type Severity string

// The severities.
const (
	Error   Severity = "error"   // something does not work, or a promise is not kept
	Warning Severity = "warning" // it works, and will not, or slowly
	Notice  Severity = "notice"  // somebody should know
)

// A Finding is something that is wrong.
type Finding struct {
	Code     string   `json:"code"`
	Severity Severity `json:"severity"`
	Stage    string   `json:"stage"`
	// Problem is what is wrong here, Cause why that matters.
	Problem string `json:"problem"`
	Cause   string `json:"cause"`
	// Fix ends it when it is pasted as it is: into psql, as the owner of the tables, where FixWith is "sql"; into a shell
	// where it is "command". Empty: there is no such text, and Advice says what to do.
	Fix     string `json:"fix,omitempty"`
	FixWith string `json:"fixWith,omitempty"`
	Advice  string `json:"advice,omitempty"`
}

// longestCheck is how many times as long as a question a check may take, which asks several.
const longestCheck = 10

// How a fix is used.
const (
	WithSQL     = "sql"
	WithCommand = "command"
)

// A Report is what was found.
type Report struct {
	Findings []Finding `json:"findings"`
	// LeftOut is what was not looked at, each with its reason.
	LeftOut []string `json:"leftOut,omitempty"`
}

// Config says what is looked at, and from when on something is wrong.
type Config struct {
	// Database is how the outbox is reached.
	Database *pgx.ConnConfig
	// Schema is where the outbox is. Defaults to "public".
	Schema string
	// Arguments are added to the outboxctl commands of fixes, where they need more than the environment to get there.
	Arguments []string
	// Part is what the role that connects should be: its rights are asked for. Defaults to none.
	Part string
	// OldTransaction is from when on a transaction is old. Defaults to 10 minutes.
	OldTransaction time.Duration
	// SlotBytes is how much log a replication slot that nobody uses may keep. Defaults to 1 GiB.
	SlotBytes int64
	// ClockTolerance is how far the clocks may differ. Defaults to 5 seconds.
	ClockTolerance time.Duration
	// RetentionAge is how long retention may not have run. Defaults to 48 hours.
	RetentionAge time.Duration
	// Timeout is how long one question may take. Defaults to 10 seconds.
	Timeout time.Duration
	// Now is this machine's clock. Defaults to time.Now.
	Now func() time.Time
}

// A examination is one run.
type examination struct {
	Config

	conn   *pgx.Conn
	op     *operator.Operator
	report Report
	stage  string

	role      string
	superuser bool
	installed time.Time
	roles     []operator.RoleGrants
	// noPlan are indexes that are known to be missing or broken.
	noPlan map[string]bool
}

// Run looks at everything, stage by stage. A stage that fails ends those that depend on it.
func Run(ctx context.Context, config Config) Report {
	config.Schema = cmp.Or(config.Schema, outbox.DefaultSchema)
	config.OldTransaction = cmp.Or(config.OldTransaction, 10*time.Minute)
	config.SlotBytes = cmp.Or(config.SlotBytes, 1<<30)
	config.ClockTolerance = cmp.Or(config.ClockTolerance, 5*time.Second)
	config.RetentionAge = cmp.Or(config.RetentionAge, 48*time.Hour)
	config.Timeout = cmp.Or(config.Timeout, 10*time.Second)
	if config.Now == nil {
		config.Now = time.Now
	}
	x := &examination{Config: config, noPlan: map[string]bool{}}
	if x.connect(ctx) {
		defer func() { _ = x.conn.Close(context.WithoutCancel(ctx)) }()
		x.examine(ctx)
	}
	if x.report.Findings == nil {
		x.report.Findings = []Finding{}
	}
	return x.report
}

// examine asks a database that has let us in.
func (x *examination) examine(ctx context.Context) {
	x.op = operator.New(x.conn, x.Schema)
	x.run(ctx, "clock", "the clocks", x.checkClock)
	x.run(ctx, "schema", "the schema's version", x.checkVersion)
	if x.failed("schema") {
		return
	}
	for _, check := range []struct {
		stage, what string
		look        func(context.Context) error
	}{
		{"schema", "the migrations' version table", x.checkVersionTable},
		{"schema", "triggers and functions", x.checkObjects},
		{"rights", "grants", x.checkGrants},
		{"rights", "row security", x.checkRowSecurity},
		{"storage", "indexes", x.checkIndexes},
		{"storage", "settings of tables", x.checkTables},
		{"storage", "the sequence", x.checkSequence},
		{"settings", "settings of the server and of roles", x.checkSettings},
		{"plans", "plans of the hot statements", x.checkPlans},
		{"transactions", "old transactions", x.checkTransactions},
		{"fleet", "on which server the outbox lives", x.checkIdentity},
		{"fleet", "relays and lanes", x.checkFleet},
		{"fleet", "pauses", x.checkPauses},
		{"fleet", "jobs", x.checkJobs},
		{"fleet", "dead events that block", x.checkBlocking},
		{"retention", "retention", x.checkRetention},
	} {
		x.run(ctx, check.stage, check.what, check.look)
		if x.conn.IsClosed() {
			x.leaveOutf("what comes after %s: the connection is lost", check.what)
			return // the others would tell the same
		}
	}
}

// run makes one check. What this role may not ask is left out, with a word.
func (x *examination) run(ctx context.Context, stage, what string, look func(context.Context) error) {
	x.stage = stage
	// Each question has a limit of its own, which the server keeps: this one is for a server that is gone.
	limited, cancel := context.WithTimeout(ctx, longestCheck*x.Timeout)
	defer cancel()
	err := look(limited)
	if ctx.Err() == nil && (sqlstate.Of(err) == sqlstate.QueryCanceled || errors.Is(err, context.DeadlineExceeded)) {
		x.advisef("not_examined", "end who holds the lock, and run it again: SELECT pid, relation::regclass FROM "+
			"pg_locks WHERE mode = 'AccessExclusiveLock' AND granted;",
			"%s: no answer in time: somebody holds a lock, or the server is too busy: %v", what, err)
		return
	}
	switch {
	case err == nil:
	case sqlstate.PermissionDenied(err):
		x.leaveOutf("%s: the role %s may not look (grant it viewer, or connect as the owner)", what, x.role)
	default:
		x.advisef("not_examined", "run it again; the error says what to do", "%s: %v", what, err)
	}
}

func (x *examination) leaveOutf(format string, args ...any) {
	x.report.LeftOut = append(x.report.LeftOut, fmt.Sprintf(format, args...))
}

// failed tells whether a stage has found an error.
func (x *examination) failed(stage string) bool {
	return slices.ContainsFunc(x.report.Findings, func(f Finding) bool { return f.Stage == stage && f.Severity == Error })
}

// found tells whether there is a finding with a code.
func (x *examination) found(code string) bool {
	return slices.ContainsFunc(x.report.Findings, func(f Finding) bool { return f.Code == code })
}

// advisef adds a finding that no text ends.
func (x *examination) advisef(code, advice, format string, args ...any) {
	finding := New(code, fmt.Sprintf(format, args...))
	finding.Advice = advice
	x.report.Findings = append(x.report.Findings, finding)
}

// sqlf adds a finding that SQL ends.
func (x *examination) sqlf(code, fix, format string, args ...any) {
	finding := New(code, fmt.Sprintf(format, args...))
	finding.Fix, finding.FixWith = fix+";", WithSQL
	x.report.Findings = append(x.report.Findings, finding)
}

// commandf adds a finding that a command ends.
func (x *examination) commandf(code, fix, format string, args ...any) {
	finding := New(code, fmt.Sprintf(format, args...))
	finding.Fix, finding.FixWith = fix, WithCommand
	x.report.Findings = append(x.report.Findings, finding)
}

// outboxctl is a command line for this outbox. The database is in the environment.
func (x *examination) outboxctl(words ...string) string {
	words = append([]string{"outboxctl"}, words...)
	if x.Schema != outbox.DefaultSchema {
		words = append(words, "--schema", x.Schema)
	}
	words = append(words, x.Arguments...)
	for i, word := range words {
		words[i] = shell.Word(word)
	}
	return strings.Join(words, " ")
}

// name is an object of the outbox, as SQL takes it.
func (x *examination) name(object string) string { return pgx.Identifier{x.Schema, object}.Sanitize() }

// ident is a name as SQL takes it, literal a text.
func ident(name string) string   { return pgx.Identifier{name}.Sanitize() }
func literal(text string) string { return "'" + strings.ReplaceAll(text, "'", "''") + "'" }

// in runs work in a transaction that changes nothing and cannot last.
func (x *examination) in(ctx context.Context, work func(ctx context.Context, tx pgx.Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, 2*x.Timeout)
	defer cancel()
	err := pgx.BeginTxFunc(ctx, x.conn, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := tx.Exec(ctx, "SELECT pg_catalog.set_config('statement_timeout', $1::text, true)",
			strconv.FormatInt(x.Timeout.Milliseconds(), 10)); err != nil {
			return err //nolint:wrapcheck // the check is named with it
		}
		return work(ctx, tx)
	})
	return err //nolint:wrapcheck // the check is named with it
}

// row asks for one row.
func (x *examination) row(ctx context.Context, statement string, args, into []any) error {
	return x.in(ctx, func(ctx context.Context, tx pgx.Tx) error {
		return tx.QueryRow(ctx, statement, args...).Scan(into...)
	})
}

// rows runs the statement of a file and takes in each row.
func (x *examination) rows(ctx context.Context, file string, args, into []any, each func()) error {
	text, err := files.ReadFile("sql/" + file + ".sql")
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	return x.in(ctx, func(ctx context.Context, tx pgx.Tx) error {
		rows, err := tx.Query(ctx, sqltext.In(x.Schema, string(text)), args...)
		if err != nil {
			return err //nolint:wrapcheck // the check is named with it
		}
		_, err = pgx.ForEachRow(rows, into, func() error {
			each()
			return nil
		})
		return err //nolint:wrapcheck // the check is named with it
	})
}

// namespace is the schema as a parameter of statements that look into the catalog.
func (x *examination) namespace() string { return pgx.Identifier{x.Schema}.Sanitize() }
