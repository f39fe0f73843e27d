package main

import (
	"cmp"
	"context"
	"errors"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/internal/shell"
	"github.com/posthaste-dev/posthaste/relay/operator/doctor"
)

// doctorCommand looks for what is broken.
type doctorCommand struct {
	root           *rootCommand
	part           string
	oldTransaction time.Duration
	slotMegabytes  int64
	clockTolerance time.Duration
	retentionAge   time.Duration
	config         string
	redisURL       string
}

func newDoctor(root *rootCommand) *cobra.Command {
	c := &doctorCommand{root: root}
	cmd := root.show(&cobra.Command{
		Use:   "doctor",
		Short: "Look for what is broken, and say what ends it",
		Long: `Look for what is broken, and say what ends it: the way to the database (name, port, TLS, login), the
schema's version, grants, indexes, settings of tables, roles and the server, plans of the hot statements, transactions
that hold others up, clocks, the sequence, relays and lanes, a restored database, pauses, and retention. It changes
nothing.

With outbox-publisher's configuration (--config FILE, POSTHASTE_CONFIG, or POSTHASTE_BROKER and other variables) also
its broker: whether it answers, and whether each topic is there, durable, and may be published to. No stream
or topic keeps anything of it; but NATS is asked by an empty message that every stream must reject, and that subscribers
without JetStream do get.

With POSTHASTE_REDIS_URL, POSTHASTE_REDIS_URL_FILE or --redis-url also the Redis
of consumers; on another machine it needs rediss://, or --insecure-allow redis.

Each finding has a code, what is wrong, why that matters, and the fix: a command, or SQL for the owner of the tables, to
be pasted as it is. A stage that fails ends those that depend on it. docs/operate/doctor.md lists all findings.

Where all is well it says "no findings" and ends with 0; with findings it ends with 1. What the role may not look at is
skipped, and the report says so: the viewer role sees most, the owner or a superuser all.`,
		Example: "  outboxctl doctor\n  outboxctl doctor --config publisher.yaml\n" +
			"  outboxctl doctor --part relay --schema billing -o json",
		Args: cobra.NoArgs,
	}, c.run)
	cmd.Flags().StringVar(&c.config, "config", "", "the configuration file of outbox-publisher, to look at its broker")
	cmd.Flags().StringVar(&c.redisURL, "redis-url", "", "the Redis of consumers, if it is not in the environment")
	cmd.Flags().StringVar(&c.part, "part", "", "what the role should be: "+strings.Join(parts, ", "))
	cmd.Flags().DurationVar(&c.oldTransaction, "old-transaction", 10*time.Minute, "from when on a transaction is old")
	cmd.Flags().Int64Var(&c.slotMegabytes, "slot-megabytes", 1024,
		"how much log a replication slot that nobody uses may keep")
	cmd.Flags().DurationVar(&c.clockTolerance, "clock-tolerance", 5*time.Second, "how far clocks may differ")
	cmd.Flags().DurationVar(&c.retentionAge, "retention-age", 48*time.Hour, "how long retention may not have run")
	return cmd
}

func (c *doctorCommand) run(ctx context.Context, p *present.Printer) error {
	if c.part != "" {
		if err := (&grantCommand{part: c.part}).checkPart(); err != nil {
			return usageError{"--part: " + err.Error()}
		}
	}
	environ, args, given, unusable := c.root.publisherConfiguration(c.config)
	redis, err := c.root.secret("POSTHASTE_REDIS_URL")
	if err != nil {
		return err
	}
	redisOptions, err := c.redisOptions(cmp.Or(c.redisURL, redis))
	if err != nil {
		return err
	}
	database, err := c.root.config()
	if err != nil {
		return err
	}
	report := doctor.Run(ctx, doctor.Config{
		Database: database, Schema: c.root.schema, Arguments: c.root.arguments(), Part: c.part,
		OldTransaction: c.oldTransaction, SlotBytes: max(c.slotMegabytes<<20, 1), ClockTolerance: c.clockTolerance,
		RetentionAge: c.retentionAge,
	})
	if given && unusable == nil {
		unusable = c.checkBroker(ctx, environ, args, &report)
	}
	for i, finding := range report.Findings {
		if finding.Code == "no_relay" && c.config != "" && unusable == nil {
			report.Findings[i].Advice, report.Findings[i].FixWith = "", doctor.WithCommand
			report.Findings[i].Fix = "outbox-publisher --config=" + shell.Word(c.config)
		}
	}
	switch {
	case unusable != nil:
		finding := doctor.New("config_invalid", unusable.Error())
		finding.Advice = "correct it; 'outboxctl config' shows and checks it alone"
		report.Findings = append(report.Findings, finding)
	case !given:
		report.LeftOut = append(report.LeftOut, "the broker: no configuration of outbox-publisher is given (--config FILE)")
	}
	if redisOptions != nil {
		if err := c.checkRedis(ctx, redisOptions, &report); err != nil {
			return err
		}
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return showReport(p, report)
}

// showReport prints what was found, and fails if that is something.
func showReport(p *present.Printer, report doctor.Report) error {
	err := p.One(report, func() (lines []string) {
		for _, finding := range report.Findings {
			lines = append(lines, findingLines(p, finding)...)
		}
		if len(report.Findings) == 0 {
			line := p.Paint(present.Good, "no findings")
			if len(report.LeftOut) > 0 {
				line += " " + p.Paint(present.Plain, "(left out: "+strings.Join(report.LeftOut, "; ")+")")
			}
			return []string{line}
		}
		for _, left := range report.LeftOut {
			lines = append(lines, p.Paint(present.Faint, "left out: "+left))
		}
		return lines
	})
	if err != nil || len(report.Findings) == 0 {
		return err
	}
	return problem{code: "findings", exit: exitFailed, err: errors.New(plural(len(report.Findings), "finding",
		"findings"))}
}

func findingLines(p *present.Printer, finding doctor.Finding) []string {
	style := present.Warn
	switch finding.Severity {
	case doctor.Error:
		style = present.Bad
	case doctor.Notice:
		style = present.Faint
	case doctor.Warning:
	}
	lines := []string{
		p.Paint(style, string(finding.Severity)) + " " + p.Paint(present.Bold, finding.Code) + "  " +
			p.Paint(present.Plain, finding.Problem),
		"  why: " + p.Paint(present.Plain, finding.Cause),
	}
	switch finding.FixWith {
	case doctor.WithSQL:
		lines = append(lines, "  fix, in psql: "+p.Paint(present.Bold, finding.Fix))
	case doctor.WithCommand:
		lines = append(lines, "  fix: "+p.Paint(present.Bold, finding.Fix))
	default:
		lines = append(lines, "  do: "+p.Paint(present.Plain, finding.Advice))
	}
	return append(lines, "")
}
