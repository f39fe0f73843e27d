package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/relay/operator/backfill"
)

// backfillHelp is the part of emit's help about queries.
const backfillHelp = `--from-query makes events of rows that existed before the outbox did. Its columns are named as
the parts of an event: key, event_type, aggregate_type, aggregate_id, data, tenant_id, headers, dedupe_key, occurred_at.
Only key must be there: it tells the rows apart, and gives the order in which they are emitted. What is the same for
all rows can be said by flags, --aggregate with the type alone; without a column aggregate_id the key is the aggregate's
id. The query only reads, in pieces, so an index on its key helps.

Without --yes it counts the rows, shows the first three events, and changes nothing. Each row is emitted once: its
dedupe key is made from its key, as backfill/AGGREGATE_TYPE/KEY, with TENANT/ before it where there is one. What was
cut off is run again: rows that have their event are passed over, which --after KEY saves as well.`

// backfillFlags are those of emit that are about a query.
type backfillFlags struct {
	query, after string
	rate         float64
	batch        int
	yes          bool
}

// ofQueries are their names.
var ofQueries = []string{"after", "rate", "batch", "yes"}

func (f *backfillFlags) add(cmd *cobra.Command) {
	cmd.Flags().StringVar(&f.query, "from-query", "", "a SELECT, or @FILE with one: an event for each of its rows")
	cmd.Flags().StringVar(&f.after, "after", "", "begin behind the row with this key")
	cmd.Flags().Float64Var(&f.rate, "rate", 500, "the most events per second; 0: no limit")
	cmd.Flags().IntVar(&f.batch, "batch", 500, "the most events of one transaction")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "emit, instead of counting only")
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		for _, name := range ofQueries {
			if f.query == "" && cmd.Flags().Changed(name) {
				return fmt.Errorf("--%s is for --from-query", name)
			}
		}
		if f.query != "" && cmd.Flags().Changed("dedupe-key") {
			return errors.New("--dedupe-key is for one event: give the query a column dedupe_key")
		}
		return nil
	}
}

// backfillReport is what became of the rows, or would.
type backfillReport struct {
	backfill.Plan

	DryRun bool               `json:"dryRun"`
	Done   *backfill.Progress `json:"done,omitempty"`
}

// backfill emits an event for each row of a query.
func (c *emitCommand) backfill(ctx context.Context, p *present.Printer) error {
	config, err := c.ofQuery()
	if err != nil {
		return err
	}
	database, _, err := c.root.configOrLocal(ctx)
	if err != nil {
		return err
	}
	pool, err := poolOf(ctx, database, 1)
	if err != nil {
		return err
	}
	defer pool.Close()
	work, err := backfill.New(pool, config)
	if err != nil {
		return c.backfillError(err)
	}
	report := backfillReport{DryRun: !c.many.yes}
	if report.Plan, err = work.Plan(ctx); err != nil {
		return c.backfillError(err)
	}
	c.warnOfUnknown(ctx, operator.New(pool, c.root.schema), report.Sample)
	if report.DryRun {
		return p.One(report, func() []string { return report.lines(p) })
	}
	done, err := work.Run(ctx, report.Plan, c.reportProgress(report.Rows))
	report.Done = &done
	if err != nil {
		if done.Key != "" {
			c.root.notef("%d events are written; the same command goes on, and with --after %s faster", done.Emitted,
				shellQuoted(done.Key))
		}
		if ctx.Err() != nil {
			err = errors.Join(ctx.Err(), err)
		}
		return c.backfillError(err)
	}
	return p.One(report, func() []string { return report.lines(p) })
}

// ofQuery is what the flags say.
func (c *emitCommand) ofQuery() (config backfill.Config, err error) {
	config = backfill.Config{
		Schema: c.root.schema, Query: c.many.query, EventType: c.eventType, AggregateType: c.aggregate,
		Namespace: c.module, TenantID: c.tenant, After: c.many.after, Batch: c.many.batch, Rate: c.many.rate,
	}
	if file, named := strings.CutPrefix(c.many.query, "@"); named {
		text, err := os.ReadFile(file)
		if err != nil {
			return config, usageError{fmt.Sprintf("--from-query: %v", err)}
		}
		config.Query = string(text)
	}
	if strings.Contains(c.aggregate, "/") {
		return config, usageError{"--aggregate is the type alone beside --from-query: the column aggregate_id has the ids"}
	}
	if config.Data, err = c.readData(); err != nil {
		return config, err
	}
	config.Headers, err = c.headerMap()
	return config, err
}

// backfillError says whose mistake it is.
func (c *emitCommand) backfillError(err error) error {
	if input := (*backfill.InputError)(nil); errors.As(err, &input) {
		return usageError{"--from-query: " + input.Err.Error()}
	}
	if query := (*backfill.QueryError)(nil); errors.As(err, &query) {
		if state := sqlState(nil); errors.As(err, &state) && state.SQLState() == "42501" {
			return problem{
				code: "permission_denied", exit: exitNotLetIn, err: err,
				hint: "GRANT SELECT ON what the query reads TO this role",
			}
		}
		return problem{
			code: "query_failed", exit: exitFailed, err: err,
			hint: "it is a sub-select that only reads: try it in psql as this role",
		}
	}
	return c.hint(err)
}

// warnOfUnknown says of which types no relay knows where they go.
func (c *emitCommand) warnOfUnknown(ctx context.Context, op *operator.Operator, sample []backfill.Sample) {
	asked := map[string]bool{}
	for _, event := range sample {
		if asked[event.Type] {
			continue
		}
		asked[event.Type] = true
		if known, err := op.CanPublish(ctx, event.Type, dev.Name); err == nil && !known {
			c.root.notef("outboxctl: no relay that is alive knows the type %s: its events wait until one does", event.Type)
		}
	}
}

// reportProgress says about every second how far it is.
func (c *emitCommand) reportProgress(rows int64) func(backfill.Progress) {
	begun, told := time.Now(), time.Now()
	return func(done backfill.Progress) {
		if time.Since(told) < time.Second {
			return
		}
		told = time.Now()
		c.root.notef("%s, at the key %s", progress(int(done.Rows), int(max(rows, done.Rows)), time.Since(begun)), done.Key)
	}
}

// lines are what people see of it.
func (r backfillReport) lines(p *present.Printer) []string {
	if r.Done != nil {
		line := "emitted " + plural(int(r.Done.Emitted), "event", "events")
		if r.Done.There > 0 {
			line += fmt.Sprintf(", %d were there already", r.Done.There)
		}
		return []string{p.Paint(present.Good, line)}
	}
	lines := []string{"of " + plural(int(r.Rows), "row", "rows") + ", would emit an event for each that has none yet"}
	for _, event := range r.Sample {
		lines = append(lines, p.Paint(present.Plain, fmt.Sprintf("  %s %s/%s, key %s: %s", event.Type, event.AggregateType,
			event.AggregateID, event.DedupeKey, cut(string(event.Data), 100))))
	}
	if r.Rows > 0 {
		lines = append(lines, "nothing is changed: do it with --yes")
	}
	return lines
}
