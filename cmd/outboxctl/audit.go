package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/relay/operator/audit"
)

// auditCommand compares the broker with the table.
type auditCommand struct {
	root   *rootCommand
	listen listenCommand // the broker
	topics []string
	former []string // topics that were published to, and that no relay names any more
	until  string
	config audit.Config
	length time.Duration
	quiet  time.Duration
	strict bool
	limit  int
	given  func(flag string) bool
}

func newAudit(root *rootCommand) *cobra.Command {
	c := &auditCommand{root: root}
	cmd := &cobra.Command{
		Use:   "audit",
		Short: "Compare what the broker holds with the table of events",
		Long: `Compare what the broker holds with the table of events, and say what differs:

  missing  published here, and not there
  unknown  there, and no event here; retention writes down what it deletes, so that is not unknown
  twice    there more than once, and nobody asked for it ('outboxctl replay'). Delivery is at least once, so this
           is no loss: it says how many consumers must have dropped

Compared are events that were made in the last --since. Those that are published while it runs, or before the broker
shows anything, and those that are not settled yet, are counted and are no findings. Nothing is changed, and nothing
taken away from consumers. The viewer role is enough. Messages are sorted in files of the temporary folder where they
are many.

A type that moves to another topic has several for a while: those of all relays that are there. An event is missing if
none of them has it. Of NATS the topics are read as well that relays published to in that time and name no more, as
outbox_minutes has it. If the relay that published an event has ended, the event may be in a topic that nobody knows of:
the line of a missing one says so. Name that topic with --topic, beside the others, before you send it again.

The broker is found as outbox-publisher finds it: by POSTHASTE_NATS_URL or POSTHASTE_PUBSUB_PROJECT and the other
variables of its configuration. At NATS the streams of the topics are read, without bodies. Pub/Sub shows nothing from
before: there a subscription of its own receives for as long as --for says, and what is published meanwhile is
compared. --slack is by how much clocks may differ, and how much later than the broker's acknowledgement an event may
be settled; at Pub/Sub it is a quarter of --for at most, unless it is given.

It exits with 5 if something is missing or unknown; with --strict also if something is there twice.`,
		Example: `  outboxctl audit
  outboxctl audit --topic orders --since 1h -o json
  outboxctl audit --broker pubsub --topic domain-events --for 10m
  outboxctl audit --since 72h --until 2026-01-31T12:00:00Z -o ndjson`,
		Args: cobra.NoArgs,
	}
	flags := cmd.Flags()
	flags.StringSliceVar(&c.topics, "topic", nil,
		"topics to read (default: all that relays publish to, at NATS also those of before)")
	flags.StringVar(&c.listen.broker, "broker", "", "nats or pubsub (default: the one that the environment names)")
	flags.DurationVar(&c.config.Since, "since", 24*time.Hour, "how long ago the oldest events were made")
	flags.StringVar(&c.until, "until", "", "when the newest were made, as 2026-01-31T12:00:00Z (default: now)")
	flags.DurationVar(&c.length, "for", 5*time.Minute, "how long to receive, at Pub/Sub")
	flags.DurationVar(&c.quiet, "quiet", 10*time.Second, "after how long without a message all have come, at Pub/Sub")
	flags.DurationVar(&c.config.Slack, "slack", 2*time.Minute,
		"how much clocks may differ, or settles be late")
	flags.BoolVar(&c.config.AllTypes, "all-types", false,
		"every published event must be in these topics, also of types that no relay knows")
	flags.BoolVar(&c.strict, "strict", false, "what is there twice is a finding")
	flags.IntVar(&c.limit, "limit", 100, "how many findings to print; all are counted")
	cmd.AddCommand(newAuditSequence(root), newAuditLog(root))
	c.given = flags.Changed
	return root.show(cmd, c.run)
}

// auditResult is what an audit came to, for programs.
type auditResult struct {
	Report   any             `json:"report"`
	Findings []audit.Finding `json:"findings"`
	// LeftOut is how many findings are not among them.
	LeftOut int64 `json:"leftOut,omitempty"`
}

func (c *auditCommand) run(ctx context.Context, p *present.Printer) error {
	if err := c.check(); err != nil {
		return err
	}
	c.listen.root = c.root
	broker, err := c.listen.named()
	if err != nil {
		return err
	}
	conn, err := c.root.connect(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	c.config.Schema = c.root.schema
	if err := c.choose(ctx, conn); err != nil {
		return c.root.looked(err)
	}
	findings := newFindings(c.root, p, c.limit)
	c.config.Found, c.config.Progress = findings.add, c.root.auditProgress
	var report audit.Report
	err = c.at(ctx, broker, func(held audit.Broker) (err error) {
		report, err = audit.Run(ctx, conn, held, c.config)
		return err
	})
	if invalid := (*config.Error)(nil); errors.As(err, &invalid) {
		return usageError{"the broker: " + err.Error()}
	}
	if errors.Is(err, audit.ErrNoWindow) {
		return usageError{fmt.Sprintf("--until %s is before --since, which is %s ago", c.until, c.config.Since)}
	}
	if err != nil {
		return c.root.looked(err)
	}
	if err := findings.end(report, func() []string { return reportLines(p, report) }); err != nil {
		return err
	}
	return c.verdict(report)
}

func (c *auditCommand) check() (err error) {
	if c.config.Since <= 0 || c.length <= 0 || c.quiet <= 0 || c.config.Slack < 0 || c.limit < 0 {
		return usageError{"--since, --for and --quiet must be above 0, and --slack and --limit not below"}
	}
	if c.until != "" {
		if c.config.Until, err = time.Parse(time.RFC3339, c.until); err != nil {
			return usageError{fmt.Sprintf("--until %.80q is no time like 2026-01-31T00:00:00Z", c.until)}
		}
	}
	return nil
}

// choose decides which topics are read: those that were named, or all that relays publish to, and those of before.
func (c *auditCommand) choose(ctx context.Context, db audit.DB) error {
	known, err := audit.Topics(ctx, db, c.root.schema)
	if err != nil {
		return err
	}
	if c.config.Topics = once(c.topics); len(c.config.Topics) > 0 {
		return c.checkNamed(known)
	}
	if len(known) == 0 {
		return problem{
			code: "no_relay", exit: exitNotFound, err: audit.ErrNoTopics,
			hint: "name them with --topic, and use --all-types if all published events must be there",
		}
	}
	c.config.Topics = known
	c.former, err = audit.FormerTopics(ctx, db, c.root.schema, c.config.Since+c.config.Slack)
	return err
}

// checkNamed refuses topics of which no relay knows what must be in them. Beside one of which they do, another may be
// one of before.
func (c *auditCommand) checkNamed(known []string) error {
	if c.config.AllTypes {
		return nil
	}
	strange := slices.DeleteFunc(slices.Clone(c.config.Topics), func(topic string) bool {
		return slices.Contains(known, topic)
	})
	if len(strange) == len(c.config.Topics) {
		return problem{
			code: "no_relay", exit: exitNotFound, err: fmt.Errorf("no relay that is there publishes to %.80q, so nobody "+
				"knows which events must be in it", strange[0]),
			hint: "start a relay, or use --all-types if all published events must be in the topics that are named; one that " +
				"events went to before is named beside that where they go now",
		}
	}
	for _, topic := range strange {
		c.root.notef("no relay that is there publishes to %.80q: it is read for what was sent there before", topic)
	}
	return nil
}

// once leaves out what was named before: two subscriptions to a topic would show everything twice, and a stream of NATS
// refuses two equal subjects.
func once(names []string) (unique []string) {
	for _, name := range names {
		if !slices.Contains(unique, name) {
			unique = append(unique, name)
		}
	}
	return unique
}

// at runs an audit at the broker.
func (c *auditCommand) at(ctx context.Context, broker string, work func(audit.Broker) error) (err error) {
	if broker == "pubsub" {
		if !c.given("slack") {
			c.config.Slack = min(c.config.Slack, c.length/4)
		}
		held := &pubsubHolding{
			environ: c.listen.environ(pubsubVariables), insecure: c.listen.insecure("pubsub"), topics: c.config.Topics,
			length: c.length, quiet: c.quiet, notef: c.root.notef,
		}
		defer func() { err = errors.Join(err, held.close()) }() //nolint:contextcheck // also after an interrupt
		return c.none(work, held)
	}
	conn, err := c.listen.connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	held := &natsHolding{
		conn: conn, stream: c.root.getenv("POSTHASTE_NATS_STREAM"), topics: c.config.Topics, notef: c.root.notef,
	}
	if err := held.alsoRead(ctx, c.former); err != nil {
		return err
	}
	c.config.Topics = held.topics
	return c.none(work, held)
}

// none takes a slack of nothing for what it says: to the library zero is the default.
func (c *auditCommand) none(work func(audit.Broker) error, held audit.Broker) error {
	c.config.Slack = orNever(c.config.Slack)
	return work(held)
}

// verdict is the exit code.
func (c *auditCommand) verdict(report audit.Report) error {
	if report.Clean() && (!c.strict || report.Twice == 0) {
		return nil
	}
	return problem{
		code: "audit_found", exit: exitFound, err: fmt.Errorf("%d missing, %d unknown, %d twice", report.Missing,
			report.Unknown, report.Twice),
		hint: "docs/operate/operations.md says what to do about each",
	}
}

func reportLines(p *present.Printer, r audit.Report) []string {
	count := func(name string, n int64, style present.Style, means string) string {
		if n == 0 {
			style = present.Good
		}
		return fmt.Sprintf("%s %s  %s", p.Paint(present.Plain, fmt.Sprintf("%-9s", name)),
			p.Paint(style, fmt.Sprintf("%9d", n)), means)
	}
	lines := []string{
		fmt.Sprintf("%d events from %s on, %d messages of %s", r.Events, r.From.Format(time.RFC3339), r.Messages,
			p.Paint(present.Bold, plural(len(r.Topics), "topic", "topics"))),
		count("missing", r.Missing, present.Bad, "published here, and not there"),
		count("unknown", r.Unknown, present.Bad, "there, and no event here"),
		count("twice", r.Twice, present.Warn, "there more than once, and nobody asked for it: no loss"),
		count("matched", r.Matched, present.Plain, "published here, and there"),
	}
	for _, other := range []struct {
		name  string
		n     int64
		means string
	}{
		{"unsure", r.Unsure, "of the missing may be in a topic that is not read: WHY says more"},
		{"copies", r.Copies, "messages that somebody asked for"},
		{"tests", r.Tests, "messages of 'outboxctl topics test', which are no events"},
		{"unsettled", r.Unsettled, "there, and not settled as published here yet"},
		{"pruned", r.Pruned, "there, and deleted here by retention"},
		{"beyond", r.Beyond, "published before the broker shows anything, at " + r.Held.Format(time.RFC3339)},
		{"others", r.OtherTopics, "of types that go to topics that are not read, or nobody knows where: not compared"},
	} {
		if other.n > 0 {
			lines = append(lines, count(other.name, other.n, present.Plain, other.means))
		}
	}
	return lines
}

// auditProgress says how far an audit is.
func (c *rootCommand) auditProgress(at audit.Progress) {
	took := time.Since(at.Begun).Seconds()
	rate := float64(at.Done) / max(took, 0.001)
	what := map[string]string{"reading": "messages", "comparing": "events", "counting": "numbers"}[at.Step]
	if at.Of <= 0 {
		c.notef("%s: %d %s, %.0f/s", at.Step, at.Done, what, rate)
		return
	}
	left := time.Duration(float64(max(at.Of-at.Done, 0)) / max(rate, 0.001) * float64(time.Second))
	c.notef("%s: %d of ≈%d %s, %.0f/s, about %s left", at.Step, at.Done, at.Of, what, rate, left.Round(time.Second))
}

// findings prints them: for programs that read lines as they come, else in the end.
type findings struct {
	root   *rootCommand
	p      *present.Printer
	most   int
	result auditResult
}

func newFindings(root *rootCommand, p *present.Printer, most int) *findings {
	return &findings{root: root, p: p, most: most, result: auditResult{Findings: []audit.Finding{}}}
}

func (f *findings) add(finding audit.Finding) error {
	if len(f.result.Findings) >= f.most {
		f.result.LeftOut++
		return nil
	}
	f.result.Findings = append(f.result.Findings, finding)
	if f.root.output != present.NDJSON {
		return nil
	}
	return f.p.Stream(finding, nil)
}

func (f *findings) end(report any, lines func() []string) error {
	f.result.Report = report
	switch f.root.output {
	case present.Table:
	case present.JSON:
		return f.p.One(f.result, nil)
	case present.NDJSON:
		return f.p.Stream(map[string]any{"report": report, "leftOut": f.result.LeftOut}, nil)
	}
	if len(f.result.Findings) > 0 {
		if err := present.List(f.p, f.result.Findings, "", findingColumns(time.Now())...); err != nil {
			return err
		}
	}
	if f.result.LeftOut > 0 {
		f.root.notef("%d more findings are not shown: --limit", f.result.LeftOut)
	}
	for _, line := range lines() {
		if err := f.p.Line(line); err != nil {
			return err
		}
	}
	return nil
}

func findingColumns(now time.Time) []present.Column[audit.Finding] {
	return []present.Column[audit.Finding]{
		{Name: "FOUND", Of: func(f audit.Finding) string { return f.Kind }, Style: func(f audit.Finding) present.Style {
			if f.Kind == audit.Twice || f.Kind == audit.Gap {
				return present.Warn
			}
			return present.Bad
		}},
		{Name: "EVENT", Of: func(f audit.Finding) string {
			if f.Event == nil {
				return ""
			}
			return f.Event.String()
		}, Optional: true},
		{Name: "NUMBER", Right: true, Optional: true, Of: func(f audit.Finding) string {
			switch {
			case f.Seq == 0:
				return ""
			case f.Last > f.Seq:
				return fmt.Sprintf("%d-%d", f.Seq, f.Last)
			}
			return strconv.FormatInt(f.Seq, 10)
		}},
		{Name: "TYPE", Of: func(f audit.Finding) string { return cut(f.Type, 40) }, Optional: true},
		{Name: "TOPIC", Of: func(f audit.Finding) string { return cut(f.Topic, 30) }, Optional: true},
		{Name: "WHEN", Of: func(f audit.Finding) string { return agoOf(f.At, now) }, Optional: true},
		{Name: "TIMES", Right: true, Optional: true, Of: func(f audit.Finding) string {
			if f.Times == 0 {
				return ""
			}
			return strconv.Itoa(f.Times)
		}},
		{Name: "WHY", Of: func(f audit.Finding) string { return f.Why }, Optional: true},
	}
}
