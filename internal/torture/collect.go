package torture

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sort"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// The files of a run that the checker reads, besides those that producers and the chaos write.
const (
	producersFile  = "producers.jsonl"
	faultsFile     = "faults.jsonl"
	allStepsFile   = "steps.jsonl" // of all relays, with the database's times
	deliveriesFile = "deliveries.jsonl"
	tablesFile     = "tables.jsonl"
)

// collector brings together what was recorded, when the run is over.
type collector struct {
	env       *Env
	operators *operators
	folder    string
	forgetful bool
	clock     clock

	steps    check.History
	changes  map[outbox.ID][]change
	failures map[outbox.ID][]int64 // when publishes of the event failed, in order
	times    []int64               // of deliveries, by arrival

	deliveries []check.Delivery
	// unwitnessed counts settles that a relay takes for applied, and that no trigger saw.
	unwitnessed int
}

// change is one change of a state as the trigger saw it.
type change struct {
	at    int64
	after check.State
}

// collect writes the files.
func (c *collector) collect(ctx context.Context) error {
	var err error
	if c.clock, err = readClock(ctx, c.env.Pool); err != nil {
		return err
	}
	var published []outbox.ID
	err = each(ctx, c, "SELECT id FROM {schema}.outbox_events WHERE state = 6", func(r struct{ ID outbox.ID }) {
		published = append(published, r.ID)
	})
	if err != nil {
		return err
	}
	deliveries, times, err := c.env.stage.deliveries(ctx, published)
	if err != nil {
		return err
	}
	c.times, c.deliveries = times, deliveries
	var history check.History
	for i := range deliveries {
		history = append(history, check.Record{Delivery: &deliveries[i]})
	}
	if err := write(c.folder, deliveriesFile, history); err != nil {
		return err
	}
	if err := c.readSteps(); err != nil {
		return err
	}
	tables, err := c.tables(ctx)
	if err != nil {
		return err
	}
	if err := write(c.folder, tablesFile, tables); err != nil {
		return err
	}
	leases, err := c.leases(ctx)
	if err != nil {
		return err
	}
	c.correct()
	return write(c.folder, allStepsFile, append(leases, c.steps...))
}

func write(folder, name string, history check.History) error {
	file, err := os.Create(filepath.Join(folder, name))
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	if err := history.Write(file); err != nil {
		return err
	}
	if err := file.Close(); err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	return nil
}

// readSteps reads what every process of a relay wrote down. A last line that a kill cut is left out.
func (c *collector) readSteps() error {
	files, err := filepath.Glob(stepsFile(c.folder, "*"))
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	c.failures = map[outbox.ID][]int64{}
	for _, name := range files {
		file, err := os.Open(name)
		if err != nil {
			return fmt.Errorf("torture: %w", err)
		}
		history, err := check.ReadHistory(file)
		file.Close()
		if err != nil {
			return fmt.Errorf("torture: %s: %w", filepath.Base(name), err)
		}
		for _, r := range history {
			if r.Step != nil && r.Step.Do == check.PublishFailed && r.Step.Request == 0 {
				c.failures[r.Step.ID] = append(c.failures[r.Step.ID], r.Step.At)
			}
		}
		c.steps = append(c.steps, history...)
	}
	for _, times := range c.failures {
		slices.Sort(times)
	}
	return nil
}

// try names what a relay did with an event under one lease.
type try struct {
	relay, token string
	id           outbox.ID
}

// ofRequest tells whether a step is of a copy. No trigger sees when that is settled, so the time of it does not count.
func ofRequest(step *check.Step) bool {
	if step.Request != 0 && step.Do == check.Settle {
		step.At = 0
	}
	return step.Request != 0
}

// correct gives every applied settle the time at which the database did it: the first such change after the
// publish that it settles. What a relay that stood still learns late was done before.
func (c *collector) correct() {
	published, unsure := map[try]int64{}, map[try]check.State{}
	for _, r := range c.steps {
		if r.Step == nil || ofRequest(r.Step) {
			continue
		}
		of := try{r.Step.Relay, r.Step.Token, r.Step.ID}
		switch {
		case r.Step.Do == check.Publish, r.Step.Do == check.Ack, r.Step.Do == check.PublishFailed:
			published[of] = r.Step.At
			delete(unsure, of)
		case r.Step.Do == check.Settle && r.Step.Result == check.Uncertain:
			unsure[of] = r.Step.To
		case r.Step.Do == check.Settle && r.Step.Result == check.Applied:
			meanwhile := func(change change) bool {
				return change.at+c.clock.wrong >= published[of] && change.at-c.clock.wrong <= r.Step.At
			}
			at := slices.IndexFunc(c.changes[r.Step.ID], func(change change) bool {
				// One that waits already may be told to wait again, which changes nothing.
				return change.after == r.Step.To &&
					(meanwhile(change) || r.Step.To == check.Waiting && change.at-c.clock.wrong <= r.Step.At)
			})
			if at < 0 && r.Step.To != check.Published && unsure[of] == r.Step.To && slices.ContainsFunc(c.changes[r.Step.ID],
				meanwhile) {
				// Sent again, when somebody else had changed the row: the relay cannot know that the first time did nothing either.
				r.Step.Result = check.Uncertain
				continue
			}
			if at < 0 {
				c.unwitnessed++
				if c.forgetful { // the relay was told so, and the database has lost it
					r.Step.Result = check.Uncertain
				}
				continue
			}
			r.Step.At = c.changes[r.Step.ID][at].at
		}
	}
}

// next is the arrival that followed the given time; 0 for an unknown time.
func (c *collector) next(at int64) uint64 {
	if at == 0 {
		return 0
	}
	return uint64(sort.Search(len(c.times), func(i int) bool { return c.times[i] > at })) + 1
}

// lastFailure is when a publish of the event last failed before it was declared dead.
func (c *collector) lastFailure(id outbox.ID, before int64) int64 {
	var last int64
	for _, at := range c.failures[id] {
		if at <= before+c.clock.wrong {
			last = at
		}
	}
	return last
}

// each runs a query and makes a record of every row.
func each[R any](ctx context.Context, c *collector, query string, record func(R)) error {
	return eachRow(ctx, c.env.Pool, c.env.SQL(query), record)
}

func eachRow[R any](ctx context.Context, pool *pgxpool.Pool, query string, record func(R)) error {
	rows, err := pool.Query(ctx, query)
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	list, err := pgx.CollectRows(rows, pgx.RowToStructByPos[R])
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	for _, r := range list {
		record(r)
	}
	return nil
}
