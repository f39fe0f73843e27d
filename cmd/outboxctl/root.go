package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/operator/check"
)

// rootCommand holds what all commands share.
type rootCommand struct {
	databaseURL     string
	databaseURLFile string
	insecureAllow   []string
	schema          string
	output          present.Format
	getenv          func(string) string
	environ         func() []string
	stdout, stderr  io.Writer // as they are
	warn            io.Writer // stderr, without what speaks to a terminal
	// configured is the database of outbox-publisher's configuration, where that was read and nothing else names one.
	configured string
}

// execute runs one command line and returns the exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer, getenv func(string) string) int {
	return executeWith(ctx, args, os.Stdin, stdout, stderr, getenv)
}

// executeWith is the same with another standard input.
func executeWith(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer,
	getenv func(string) string,
) int {
	c := &rootCommand{output: present.Table, getenv: getenv, environ: os.Environ, stdout: stdout, stderr: stderr}
	// What is printed may be what somebody wrote into the database. Results that have colours are cleaned by present.
	stdout, stderr = clean.Writer(stdout), clean.Writer(stderr)
	c.warn = stderr
	root := c.command() //nolint:contextcheck // cobra hands the context to whichever command runs
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	called, err := root.ExecuteContextC(ctx)
	if err == nil {
		return exitDone
	}
	if status := (statusError{}); errors.As(err, &status) {
		return status.code
	}
	path := cmp.Or(called.Annotations[movedTo], called.CommandPath())
	code := report(ctx, stderr, err, path, c.output != present.Table)
	if called.Name() == "check" && called.Parent() == root && code != exitInterrupt {
		return int(check.Unknown) // to a monitoring system the others are findings
	}
	return code
}

func (c *rootCommand) command() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "outboxctl",
		Short: "Install and look after a transactional outbox in PostgreSQL",
		Long: `'outboxctl dev' shows the first event on this terminal, without a broker; 'outboxctl init' writes a Go module
to begin with.

outboxctl installs and migrates the tables of an outbox, grants its parts their rights, finds events and says why they
wait, says what is broken and what ends it, decides about events that are dead or parked, has the relays pause and
resume, and deletes what is finished and old.

The database is POSTHASTE_DATABASE_URL, or the content of the file that POSTHASTE_DATABASE_URL_FILE names, or
DATABASE_URL: a postgres:// URL or a list like "host=... dbname=...". POSTHASTE_DATABASE_PASSWORD, or the file of
POSTHASTE_DATABASE_PASSWORD_FILE, is its password where that is kept apart. --database-url-file and --database-url are
stronger; but other users of the machine can read command lines, so no password belongs there.

A database on another machine needs sslmode=verify-full, as outbox-publisher asks for it. --insecure-allow database, or
POSTHASTE_INSECURE_ALLOW=database, lets it go over the network in plain text.

Exit codes: 0 done, 1 failed, 2 not understood, 3 not found, 4 not let in by the database, 5 an audit found something,
130 interrupted. Those of 'check' are what monitoring systems prescribe.`,
		Args:          knownCommand,
		RunE:          func(*cobra.Command, []string) error { return errors.New("a command is missing") },
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	cmd.PersistentFlags().StringVar(&c.databaseURL, "database-url", "", "the database, if it is not in the environment")
	cmd.PersistentFlags().StringVar(&c.databaseURLFile, "database-url-file", "", "a file that holds it")
	cmd.PersistentFlags().StringSliceVar(&c.insecureAllow, "insecure-allow", nil,
		"what may be on another machine without verified TLS: database, nats, pubsub, redis")
	cmd.PersistentFlags().StringVar(&c.schema, "schema", "public", "the schema of the outbox")
	cmd.SetFlagErrorFunc(movedFlag)
	cmd.SuggestionsMinimumDistance = 2
	c.addCommands(cmd)
	addMoved(cmd)
	c.completeAll(cmd)
	return cmd
}

// addCommands adds the commands, in the groups in which help lists them.
func (c *rootCommand) addCommands(root *cobra.Command) {
	ofDead, ofWaiting := verbCommands(c)
	for _, group := range []struct {
		id, title string
		commands  []*cobra.Command
	}{
		{"start", "Start:", []*cobra.Command{newDev(c), newInit(c), newEmit(c), newListen(c)}},
		{"look", "Look:", []*cobra.Command{
			newStatus(c), newTop(c), newProblems(c), newEvents(c), newAggregate(c), newDead(c, ofDead), newLanes(c),
			newRelays(c), newTopics(c), newPauses(c), newConsole(c),
		}},
		{"check", "Check:", []*cobra.Command{
			newDoctor(c), newCheck(c), newAudit(c), newGrants(c), newConfig(c), newRegistry(c),
		}},
		{"decide", "Decide:", append(ofWaiting, newReplay(c), newJobs(c), newPause(c), newResume(c))},
		{"keep", "Install and keep:", []*cobra.Command{
			newMigrate(c), (&grantCommand{root: c}).command(), (&pruneCommand{root: c}).command(), newVersion(c),
			newCompletion(),
		}},
	} {
		root.AddGroup(&cobra.Group{ID: group.id, Title: group.title})
		for _, command := range group.commands {
			command.GroupID = group.id
			root.AddCommand(command)
		}
	}
}

// run wraps the work of a command, so that its errors count as failures.
func run(work func(ctx context.Context, out io.Writer) error) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, _ []string) error {
		err := work(cmd.Context(), cmd.OutOrStdout())
		var usage usageError
		if err == nil || errors.As(err, &usage) {
			return err
		}
		return failure{err}
	}
}

// show is run for a command with results: it adds --output, and the work gets what prints them.
func (c *rootCommand) show(cmd *cobra.Command,
	work func(ctx context.Context, p *present.Printer) error,
) *cobra.Command {
	cmd.Flags().VarP(&c.output, "output", "o", "how to print the result")
	cmd.RunE = run(func(ctx context.Context, _ io.Writer) error {
		return work(ctx, present.New(c.stdout, c.output, c.colors(c.stdout)))
	})
	return cmd
}

// notes prints for people, beside the results.
func (c *rootCommand) notes() *present.Printer {
	return present.New(c.stderr, present.Table, c.colors(c.stderr))
}

// colors says whether this is a terminal that has colours, and somebody wants them.
func (c *rootCommand) colors(to io.Writer) bool {
	terminal, ok := to.(*os.File)
	return ok && c.getenv("NO_COLOR") == "" && c.getenv("TERM") != "dumb" && term.IsTerminal(int(terminal.Fd()))
}

// say prints a result.
func say(out io.Writer, format string, args ...any) error {
	if _, err := fmt.Fprintf(out, format, args...); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
