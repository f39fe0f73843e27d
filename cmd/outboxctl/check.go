package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/relay/operator/check"
)

// checkCommand is for monitoring systems.
type checkCommand struct {
	root    *rootCommand
	format  string
	timeout time.Duration
	config  check.Config
	ages    [4]time.Duration
}

// statusError ends the program with a code, for instance one that monitoring systems prescribe. All of it was printed.
type statusError struct{ code int }

func (statusError) Error() string { return "not ok" }

func newCheck(root *rootCommand) *cobra.Command {
	c := &checkCommand{root: root, config: check.Defaults()}
	cmd := &cobra.Command{
		Use:   "check",
		Short: "Say for a monitoring system how the outbox stands: ok, warning, critical or unknown",
		Long: `Say for a monitoring system how the outbox stands. The exit code is the state, as Nagios prescribes it: 0
ok, 1 warning, 2 critical, 3 unknown (the database does not answer, or the role may not look, or the command line is
wrong).

  age               seconds since the oldest event that is ready was emitted: how far the relays are behind
  pending           events that are ready
  held_age          the same for events that are retried, parked, or wait behind others
  dead              events that nobody will try again by itself
  blocked           aggregates that a dead event blocks, whether or not later ones wait
  relays            relays that are alive: a minimum
  unheld            lanes that no live relay holds
  paused            what operators have paused
  failing           topics that relays have paused, because publishing fails
  restored          1 on a database that was restored or copied: relays pause there, and do not show as alive
  retention_halted  kinds of rows of which retention deletes nothing
  schema            warning if the tables have another version than this outboxctl, critical if there are none

The age of what is paused, or whose topic fails, is a warning at most: that is why it waits. The age of anything else
counts, also of what waits behind an event of a paused type.

A limit is crossed by more than its number (of relays by fewer); -1 is none. What is counted is counted up to 10,000, by
a few small statements that end by themselves. The viewer role is enough.`,
		Example: `  outboxctl check
  outboxctl check --format prometheus >/var/lib/node_exporter/outbox.prom
  outboxctl check --warn-age 5m --crit-age 1h --crit-dead 0`,
		Args: cobra.NoArgs,
		RunE: run(c.run),
	}
	flags := cmd.Flags()
	flags.StringVar(&c.format, "format", "nagios", "nagios, prometheus or json")
	flags.DurationVar(&c.timeout, "timeout", 10*time.Second, "how long all of it may take; then it is unknown")
	for i, age := range []struct {
		name   string
		limits check.Limits
	}{{"age", c.config.Age}, {"held-age", c.config.Held}} {
		flags.DurationVar(&c.ages[2*i], "warn-"+age.name, seconds(age.limits.Warn), "warning above this "+age.name)
		flags.DurationVar(&c.ages[2*i+1], "crit-"+age.name, seconds(age.limits.Crit), "critical above this "+age.name)
	}
	for _, number := range []struct {
		name, what string
		limits     *check.Limits
	}{
		{"pending", "warning|critical above so many events that are ready", &c.config.Pending},
		{"dead", "warning|critical above so many dead events", &c.config.Dead},
		{"blocked", "warning|critical above so many blocked aggregates", &c.config.Blocked},
		{"unheld", "warning|critical above so many lanes without a live relay", &c.config.Unheld},
		{"paused", "warning|critical above so many pauses of operators", &c.config.Paused},
		{"failing", "warning|critical above so many topics that fail", &c.config.Failing},
		{"relays", "warning|critical below so many live relays", &c.config.Relays},
	} {
		flags.Float64Var(&number.limits.Warn, "warn-"+number.name, number.limits.Warn,
			strings.Replace(number.what, "|critical", "", 1))
		flags.Float64Var(&number.limits.Crit, "crit-"+number.name, number.limits.Crit,
			strings.Replace(number.what, "warning|", "", 1))
	}
	return cmd
}

func seconds(value float64) time.Duration { return time.Duration(value * float64(time.Second)) }

func (c *checkCommand) run(ctx context.Context, out io.Writer) error {
	switch c.format {
	case "nagios", "prometheus", "json":
	default:
		return usageError{fmt.Sprintf("--format %.20q is none of nagios, prometheus and json", c.format)}
	}
	c.config.Schema = c.root.schema
	c.config.Age = check.Limits{Warn: limit(c.ages[0]), Crit: limit(c.ages[1])}
	c.config.Held = check.Limits{Warn: limit(c.ages[2]), Crit: limit(c.ages[3])}
	asking, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	pool, err := c.root.pool(asking)
	if usage := (usageError{}); errors.As(err, &usage) {
		return err
	}
	var result check.Result
	if err != nil {
		text, _, _ := strings.Cut(err.Error(), "\n")
		result = check.Result{State: check.Unknown, Checks: []check.Check{{
			Name: "database", State: check.Unknown, Text: text, Limits: check.Limits{Warn: check.None, Crit: check.None},
		}}}
	} else {
		defer pool.Close()
		result = check.Run(asking, pool, c.config)
	}
	if ctx.Err() != nil {
		return ctx.Err()
	}
	if err := c.print(out, result); err != nil {
		return err
	}
	if result.State != check.OK {
		return statusError{int(result.State)}
	}
	return nil
}

// limit is an age in seconds; one below zero is none.
func limit(age time.Duration) float64 {
	if age < 0 {
		return check.None
	}
	return age.Seconds()
}

func (c *checkCommand) print(out io.Writer, result check.Result) error {
	switch c.format {
	case "prometheus":
		return say(out, "%s", result.Prometheus())
	case "json":
		text, err := json.MarshalIndent(result, "", "  ")
		if err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return say(out, "%s\n", text)
	}
	return say(out, "%s", result.Nagios())
}
