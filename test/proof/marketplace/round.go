package marketplace

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// round is a round under way.
type round struct {
	*env
	plan          Plan
	inbox         string
	processes     processes
	load          *load
	faults        check.History
	deadWorkers   []string
	interruptions []Interruption
	between       bool // a worker has been killed between a notice and its mark
	report        *Round
	sayf          func(format string, args ...any)
}

// Play runs the marketplace with a broker and an inbox through everything, and checks what came of it.
func Play(ctx context.Context, plan Plan, broker, inbox string, say io.Writer) (_ *Round, err error) {
	name := broker + "-" + inbox
	folder := filepath.Join(plan.Folder, name)
	if err := os.MkdirAll(folder, 0o700); err != nil {
		return nil, fmt.Errorf("marketplace proof: %w", err)
	}
	began := time.Now()
	r := &round{plan: plan, inbox: inbox, report: NewRound(broker, inbox, plan), sayf: func(format string, args ...any) {
		// An error here is of no consequence.
		_, _ = fmt.Fprintf(say, "proof-marketplace/%s: %5.1f s: %s\n", name, time.Since(began).Seconds(),
			fmt.Sprintf(format, args...))
	}}
	if r.env, err = newEnv(ctx, plan, broker, inbox, folder); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.close()) }()
	address, err := server.FreeAddress()
	if err != nil {
		return nil, err
	}
	r.load = newLoad("http://"+address, plan.Clients)
	r.processes = newProcesses(plan, folder, address, r.environment)
	defer r.processes.close()
	if err := r.play(ctx); err != nil {
		return nil, fmt.Errorf("the round of %s: %w", name, err)
	}
	r.report.Seconds = time.Since(began).Seconds()
	return r.report, nil
}

func (r *round) play(ctx context.Context) (err error) {
	if err := r.processes.start(ctx); err != nil {
		return err
	}
	watching, stop := context.WithCancel(ctx)
	defer stop()
	var watch sync.WaitGroup
	watch.Go(func() { r.watch(watching) })
	if err := r.underLoad(ctx); err != nil {
		return err
	}
	r.sayf("%d requests were answered, %d were not; %d processes were killed", r.report.Answers.Done,
		r.report.Answers.Interrupted, r.report.killed())
	if err := r.drain(ctx); err != nil {
		return err
	}
	r.sayf("drained=%t after %.1f s", r.report.Drained, r.report.DrainTime.Seconds())
	stop()
	watch.Wait()
	if err := r.stop(); err != nil {
		return err
	}
	return r.examine(ctx)
}

// underLoad makes requests and kills processes, for as long as the plan says, and longer if that was not enough: on a
// busy machine everything takes its time.
func (r *round) underLoad(ctx context.Context) error {
	loading, stop := context.WithTimeout(ctx, 10*r.plan.Load+5*time.Minute)
	defer stop()
	answered := make(chan Answers, 1)
	go func() { answered <- r.load.run(loading, r.plan) }()
	began := time.Now()
	err := r.injections(loading, func() (bool, error) {
		if time.Since(began) < r.plan.Load {
			return false, nil
		}
		return r.enough(ctx)
	})
	stop()
	r.report.Answers = <-answered
	if err == nil && ctx.Err() != nil {
		err = context.Cause(ctx)
	}
	return err
}

// mostAtCommit is how many workers are killed at the commit of a notice in the hope of one that falls between the
// notice and its mark: every one does, of a worker that marks behind its effect.
const mostAtCommit = 3

// enough tells whether the report will find that enough was tested.
func (r *round) enough(ctx context.Context) (bool, error) {
	for _, kind := range Kinds {
		if r.report.Kills[kind] < r.plan.Kills {
			return false, nil
		}
	}
	if r.report.MidRequest == 0 || r.report.InSettle == 0 || r.report.AtCommit == 0 || r.report.BeforeCommit == 0 {
		return false, nil
	}
	if r.inbox == Redis && !r.between && r.report.AtCommit < mostAtCommit {
		return false, nil
	}
	if done, interrupted := r.load.counts(); interrupted == 0 || done <= r.plan.requests()*3/4 {
		return false, nil
	}
	var types, changes int
	err := r.pool.QueryRow(ctx, "SELECT count(DISTINCT type), count(*) FILTER (WHERE type = $1) FROM witness.events",
		licenseChanged).Scan(&types, &changes)
	if err != nil {
		return false, fmt.Errorf("marketplace proof: %w", err)
	}
	return types >= len(events.EventTypes) && changes >= r.report.enough(), nil
}

// watch looks how many messages wait for the consumers. When they get many, the clients wait as well. So they do when
// many are about to come at once over Pub/Sub, where that counts: those that lie in the lanes of a dead publisher until
// its lease ends.
func (r *round) watch(ctx context.Context) {
	for wait.For(ctx, 100*time.Millisecond) == nil {
		n, err := r.waiting(ctx)
		if err != nil {
			continue
		}
		r.report.Watched++
		r.report.Waiting = max(r.report.Waiting, n)
		open, err := r.count(ctx, "SELECT count(*) FROM outbox_events WHERE state <> 6")
		r.load.waits.Store(n > mostWaiting/2 || r.nats == nil && err == nil && n+open > mostAhead)
	}
}

// mostAhead leaves room for what the clients do between two looks.
const mostAhead = mostWaiting * 3 / 4

// drain waits until everything is published and the consumers have acknowledged all of it. It does not look at what
// they made of it: that is the checker's.
func (r *round) drain(ctx context.Context) error {
	began := time.Now()
	for least, since := -1, began; ; {
		open, err := r.count(ctx, "SELECT count(*) FROM outbox_events WHERE state <> 6")
		if err != nil {
			return err
		}
		waiting, err := r.waiting(ctx)
		if err != nil {
			return err
		}
		if least < 0 || open+waiting < least {
			least, since = open+waiting, time.Now()
		}
		r.report.Drained, r.report.DrainTime = open == 0 && waiting == 0, time.Since(began)
		if r.report.Drained || time.Since(since) > r.plan.Drain {
			return nil
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return err
		}
	}
}

// stopTime is more than any of the programs needs to finish what it has begun.
const stopTime = 40 * time.Second

// stop asks the processes to stop, as a deployment does. An exit code other than 0 is a fault.
func (r *round) stop() error {
	for _, a := range r.processes {
		began := time.Now()
		_, err := a.program.Stop(context.Background(), stopTime)
		took := time.Since(began)
		if err != nil {
			return err
		}
		if code := a.program.ExitCode(); code != 0 {
			r.report.Unclean = append(r.report.Unclean,
				fmt.Sprintf("%s ended with %d after %s", a.instance(), code, took.Round(time.Millisecond)))
		}
	}
	return nil
}

// examine reads everything and has it checked.
func (r *round) examine(ctx context.Context) error {
	facts, err := readFacts(ctx, r.pool)
	if err != nil {
		return err
	}
	finished, err := r.finished(ctx)
	if err != nil {
		return err
	}
	report := r.report
	report.Notices = CheckNotices(facts, r.interruptions, finished)
	report.Tables = append(CheckTables(facts), CheckAnswers(facts, report.Answers.Promised)...)
	report.Model, report.ModelDiffers = len(facts.Model), CheckModel(facts)
	report.Types = map[string]int{}
	for _, e := range facts.Emitted {
		report.Types[e.Type]++
	}
	history, err := r.history(ctx, facts)
	if err != nil {
		return err
	}
	if err := writeHistory(filepath.Join(r.folder, "history.jsonl"), history); err != nil {
		return err
	}
	report.Verdict = history.Check(check.Floor{
		Committed: r.plan.requests() / 2, OrderedAggregates: 20, Duplicates: 1,
		Faults: map[check.FaultKind]int{check.Kill: r.plan.Kills},
	})
	return nil
}

// history is what was emitted, what arrived and what the outbox says, in the checker's words.
func (r *round) history(ctx context.Context, facts *Facts) (check.History, error) {
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		return nil, err
	}
	history, err := transactions(facts.Emitted, registry)
	if err != nil {
		return nil, err
	}
	published, err := rows[struct{ ID outbox.ID }](ctx, r.pool, "SELECT id FROM outbox_events WHERE state = 6")
	if err != nil {
		return nil, err
	}
	var ids []outbox.ID
	for _, p := range published {
		ids = append(ids, p.ID)
	}
	deliveries, err := r.recorder.Deliveries(ctx, ids)
	if err != nil {
		return nil, err
	}
	for i := range deliveries {
		history = append(history, check.Record{Delivery: &deliveries[i]})
	}
	tables, err := readTables(ctx, r.pool)
	if err != nil {
		return nil, err
	}
	end := &check.End{Drained: r.report.Drained, Dumped: true, Held: true}
	if r.nats == nil {
		end.Pipelined, end.Doubtful = topics, topics
	}
	return append(append(append(history, r.faults...), tables...), check.Record{End: end}), nil
}

func writeHistory(name string, history check.History) error {
	file, err := os.Create(name)
	if err != nil {
		return fmt.Errorf("marketplace proof: %w", err)
	}
	return errors.Join(history.Write(file), file.Close())
}
