package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/pprof"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// The subjects by name. "Again" is the same code a second time: the A/A control.
const (
	bare           = "bare loop"
	bareAgain      = "bare loop again"
	minimal        = "minimal loop, own table"
	bareApart      = "bare loop, two connections"
	rowLease       = "row-lease loop"
	relayUnchecked = "relay, no contract check"
	relayTyped     = "relay, typed contract"
	relaySchema    = "relay, typed and JSON Schema"
	bareNATS       = "NATS: bare loop"
	relayNATS      = "NATS: relay, typed contract"
)

func (o options) subjects() []string {
	all := []string{minimal, bare, relayTyped, bareAgain, relayUnchecked, rowLease, relaySchema, bareNATS, relayNATS}
	if o.long {
		all = append(all, bareApart)
	}
	return all
}

// drainers are the subjects with one relay, or none.
func (r *run) drainers() (map[string]drain.Drainer, error) {
	typed, err := drain.Registry(drain.Topic, false)
	withSchema, schemaErr := drain.Registry(drain.Topic, true)
	toNATS, natsErr := drain.Registry(r.nats.Subject(), false)
	if err := errors.Join(err, schemaErr, natsErr); err != nil {
		return nil, err
	}
	loop := drain.Bare{Env: r.env, Batch: r.options.batch}
	apart := loop
	apart.Apart = true
	all := map[string]drain.Drainer{
		bare:           drain.ToNowhere(bare, drain.OutboxTable, loop),
		bareAgain:      drain.ToNowhere(bareAgain, drain.OutboxTable, loop),
		minimal:        drain.ToNowhere(minimal, drain.MinimalTable, drain.Minimal{Env: r.env, Batch: r.options.batch}),
		bareApart:      drain.ToNowhere(bareApart, drain.OutboxTable, apart),
		rowLease:       drain.ToNowhere(rowLease, drain.LeaseTable, drain.RowLease{Env: r.env, Batch: r.options.batch}),
		relayUnchecked: drain.RelayToNowhere(relayUnchecked, drain.Relay{Env: r.env, Registry: typed, NoContractCheck: true}),
		relayTyped:     drain.RelayToNowhere(relayTyped, drain.Relay{Env: r.env, Registry: typed}),
		relaySchema:    drain.RelayToNowhere(relaySchema, drain.Relay{Env: r.env, Registry: withSchema}),
		bareNATS:       r.nats.BareToNATS(bareNATS, loop),
		relayNATS:      r.nats.RelayToNATS(relayNATS, drain.Relay{Env: r.env, Registry: toNATS}),
	}
	if r.options.profile != "" {
		all[relayTyped] = profiled(all[relayTyped], r.options.profile)
	}
	return all, nil
}

// profiled writes a CPU profile of every turn; the last one stays.
func profiled(d drain.Drainer, path string) drain.Drainer {
	inner := d.Drain
	d.Drain = func(ctx context.Context, ledger *drain.Ledger, settled func() error) (err error) {
		file, err := os.Create(path)
		if err != nil {
			return fmt.Errorf("-profile: %w", err)
		}
		defer func() { err = errors.Join(err, file.Close()) }()
		if err := pprof.StartCPUProfile(file); err != nil {
			return fmt.Errorf("-profile: %w", err)
		}
		defer pprof.StopCPUProfile()
		return inner(ctx, ledger, settled)
	}
	return d
}

// single drains with one relay, or none, in turns: A B C, C B A, B C A and so on, a fresh backlog each.
func (r *run) single(ctx context.Context) ([]drain.Turn, error) {
	template, err := r.env.Template(ctx, "single", r.options.events, 0)
	if err != nil {
		return nil, err
	}
	drainers, err := r.drainers()
	if err != nil {
		return nil, err
	}
	names := r.options.subjects()
	const each = 2 * time.Second // a guess; the time left is scaled by what it took
	progress := bench.NewProgress(os.Stderr, "bench-drain", time.Duration(r.options.pairs*len(names))*each)
	var turns []drain.Turn
	for pair := range r.options.pairs {
		for position, at := range half(len(names), pair) {
			name := names[at]
			var turn drain.Turn
			measure := r.env.Measure
			if pair == 0 { // what is counted is the same in every turn
				measure = r.env.Count
			}
			err := r.counting(ctx, name, func() (err error) {
				turn, err = measure(ctx, template, drainers[name])
				return err
			})
			if err != nil {
				return nil, err
			}
			turn.Block = bench.Block{Subject: name, Round: pair, Position: position}
			turns = append(turns, turn)
			progress.Done(each, fmt.Sprintf("%s, turn %d of %d", name, pair+1, r.options.pairs))
		}
	}
	return turns, nil
}

// counting runs a drain and prints what its statements cost, where that was asked for.
func (r *run) counting(ctx context.Context, what string, measure func() error) error {
	if !r.options.statements {
		return measure()
	}
	if err := r.env.DB.CountPages(ctx); err != nil {
		return err
	}
	if err := measure(); err != nil {
		return err
	}
	all, err := r.env.Statements(ctx)
	if err != nil {
		return err
	}
	table := bench.NewTable("calls", "rows", "ms", "buffers", "WAL bytes", "statement")
	for _, s := range all {
		table.Add(fmt.Sprint(s.Calls), fmt.Sprint(s.Rows), fmt.Sprintf("%.1f", 1000*s.Time.Seconds()), fmt.Sprint(s.Buffers),
			fmt.Sprint(s.Bytes), s.Text)
	}
	return table.Print(os.Stdout, "Statements: "+what)
}

// half is the order of one turn of each: two in a row make the palindrome of [bench.Turns].
func half(subjects, pair int) []int {
	turns := bench.Turns(subjects, pair/2)
	if pair%2 == 0 {
		return turns[:subjects]
	}
	return turns[subjects:]
}

func samples(turns []drain.Turn) []bench.Sample {
	all := make([]bench.Sample, len(turns))
	for i, turn := range turns {
		all[i] = turn.Sample
	}
	return all
}
