package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/test/bench/drain"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// zipf is the skew of the aggregates where it is not uniform.
const zipf = 1.1

// setting is a broker and a backlog for fleets of several sizes.
type setting struct {
	delay  time.Duration
	zipf   bool
	kill   bool
	rate   int // events per second that are offered; 0: all at once
	relays []int
	pairs  int
	events int
	lease  time.Duration
}

// offered is the load of a busy application, in events per second.
const offered = 2000

// defaultLease is the relay's own.
const defaultLease = 30 * time.Second

func (s setting) String() string {
	text := "uniform"
	if s.zipf {
		text = "zipf"
	}
	text = fmt.Sprintf("%s, %s", text, s.delay)
	if s.rate > 0 {
		text += fmt.Sprintf(", %d/s", s.rate)
	}
	if s.kill {
		text += ", one killed"
	}
	return text
}

// settings lists the fleets of a run. With a delay, a hot aggregate takes its events one by one, so that
// setting has fewer of them.
func (o options) settings() []setting {
	const delay = 20 * time.Millisecond
	few, hot, once := []int{1, 16}, o.fleetEvents/16, 1
	if o.long {
		few, once = []int{1, 4, 16}, o.fleetPairs/2
	}
	all := []setting{
		{relays: []int{1, 4, 16}, pairs: o.fleetPairs, events: o.fleetEvents},
		{relays: []int{1, 16}, pairs: o.fleetPairs, events: o.fleetEvents, rate: offered},
		{relays: few, pairs: once, events: o.fleetEvents, delay: delay},
		{relays: few, pairs: once, events: o.fleetEvents, zipf: true},
		{relays: few, pairs: once, events: hot, zipf: true, delay: delay},
		{relays: []int{4}, pairs: 1, events: o.fleetEvents, delay: delay, kill: true, lease: o.killLease},
	}
	for i := range all {
		all[i].lease = cmp.Or(all[i].lease, defaultLease)
	}
	return all
}

// fleetTurns are the turns of one setting.
type fleetTurns struct {
	setting
	hottest int
	turns   []drain.FleetTurn
}

func (r *run) fleets(ctx context.Context) ([]fleetTurns, error) {
	progress := bench.NewProgress(os.Stderr, "bench-drain", r.options.planned())
	var all []fleetTurns
	for i, s := range r.options.settings() {
		skew := 0.0
		if s.zipf {
			skew = zipf
		}
		template, err := r.env.Template(ctx, "fleet_"+strconv.Itoa(i), s.events, skew)
		if err != nil {
			return nil, err
		}
		of := fleetTurns{setting: s, hottest: template.Hottest}
		for pair := range s.pairs {
			for position, at := range half(len(s.relays), pair) {
				fleet := drain.Fleet{
					Env: r.env, Template: template, Relays: s.relays[at], Delay: s.delay, Lease: s.lease, Kill: s.kill,
					Rate: s.rate, Folder: r.folder,
				}
				var turn drain.FleetTurn
				err := r.counting(ctx, fmt.Sprintf("%s, %d relays", s, fleet.Relays), func() (err error) {
					turn, err = fleet.Measure(ctx)
					return err
				})
				if err != nil {
					return nil, fmt.Errorf("%s, %d relays: %w", s, fleet.Relays, err)
				}
				turn.Block = bench.Block{Subject: strconv.Itoa(fleet.Relays), Round: pair, Position: position}
				of.turns = append(of.turns, turn)
				progress.Done(fleetTurnGuess, fmt.Sprintf("%s, %d relays", s, fleet.Relays))
			}
		}
		all = append(all, of)
	}
	return all, nil
}

// fleetTurnGuess is what a turn may take; the time left is scaled by what turns took.
const fleetTurnGuess = 4 * time.Second

func (o options) planned() time.Duration {
	turns := 0
	for _, s := range o.settings() {
		turns += s.pairs * len(s.relays)
	}
	return time.Duration(turns) * fleetTurnGuess
}
