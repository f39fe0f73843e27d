package chaos

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"time"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
)

// Name is how the proof calls itself.
const Name = "proof-chaos"

// The brokers, one for each half.
const (
	NATS   = "nats"
	PubSub = "pubsub"
)

// Plan is how large the proof is.
type Plan struct {
	// Duration is how long producers write, both halves together.
	Duration time.Duration
	// Rate is how many events they write in a second, and Aggregates of how many things. Defaults to 500.
	Rate, Aggregates int
	Seed             uint64
	Folder           string
	// Executable is the proof's own program, and RaceExecutable the same with the race detector, for one of the
	// relays.
	Executable, RaceExecutable string
	// Mutant names a bug of the publishers; see package torture.
	Mutant string
}

// Long is the whole proof.
func Long() Plan { return Plan{Duration: 2 * time.Minute, Rate: 450} }

// Short is the form for every change.
func Short() Plan { return Plan{Duration: 24 * time.Second, Rate: 345} }

// clocks is how far the database's clock is off in the half of a broker.
var clocks = map[string]time.Duration{NATS: time.Hour, PubSub: -time.Hour}

// Half plays the half of a broker and checks it.
func Half(ctx context.Context, plan Plan, broker string, say io.Writer) (_ *torture.Report, err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	s, err := newServers(ctx, plan, broker, fail, say)
	if err != nil {
		return nil, errors.Join(err, context.Cause(ctx))
	}
	defer func() { err = errors.Join(err, s.close()) }()
	report, err := s.play(ctx, s.plan(plan, broker))
	if err != nil {
		return nil, fmt.Errorf("the half of %s: %w", broker, err)
	}
	return report, nil
}

// play plays a half on these servers. An error says first which of them ended by itself, if one did.
func (s *servers) play(ctx context.Context, half torture.Plan) (*torture.Report, error) {
	report, err := torture.Run(ctx, half, s.say)
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		err = errors.Join(cause, err)
	}
	if err != nil {
		return nil, err
	}
	report.Figures = append(report.Figures, torture.Figure{Name: "pooler_crashes", Value: int(s.poolerCrashes.Load())})
	return report, nil
}

// plan is a half as package torture plays it.
func (s *servers) plan(plan Plan, broker string) torture.Plan {
	production := plan.Duration / 2
	events := int(production.Seconds()) * plan.Rate
	half := torture.Plan{
		Name: Name + "/" + broker, Postgres: s.database.URL() + "&application_name=keeper",
		Folder:       filepath.Join(s.folder, "histories"),
		ProducersVia: s.through(s.toPooler, true), RelaysVia: s.through(s.toDatabase, false),
		RelaysListen: s.through(s.toDatabase, false),
		Broker:       s.brokerURL, BrokerVia: s.brokerThrough(), Executable: plan.Executable,
		FirstExecutable: plan.RaceExecutable,
		Relays:          3, Producers: 8, Aggregates: cmp.Or(plan.Aggregates, 500), Events: events, Production: production,
		Lease: 3 * time.Second, Drain: 2 * time.Minute,
		Seed: plan.Seed, Unsteady: true, Thorough: true, Duplicates: events / 1000, LostAcks: 20, Mutant: plan.Mutant,
	}
	if broker == PubSub {
		half.RelaysVia = s.through(s.toPoolerToo, true)
	}
	half.Schedule = s.schedule(half, production, broker)
	return half
}

// schedule is every kind of fault. Least is what a minute must have seen, and Every less than half of what that allows.
func (s *servers) schedule(half torture.Plan, production time.Duration, broker string) []torture.Fault {
	minutes := production.Minutes()
	least := func(inAMinute float64) int { return max(1, int(inAMinute*minutes)) }
	// A short run has every kind as well. To find a bug once or twice of each is enough.
	times := time.Duration(3)
	if half.Mutant != "" {
		times = 1
	}
	every := func(length time.Duration) time.Duration { return min(length, production/times) }
	// Three kinds take the database away: more often, and hardly anything would be published in a short run.
	away := func(length time.Duration) time.Duration { return min(length, 3*production/2/times) }
	relays := s.toDatabase
	if broker == PubSub {
		relays = s.toPoolerToo
	}
	list := []torture.Fault{
		torture.Kills(every(3*time.Second), least(8)),
		torture.Leaves(every(15*time.Second), least(2)),
		torture.Pauses(every(13*time.Second), least(2)),
		torture.Outages(every(14*time.Second), least(2)),
		torture.Terminations(application, every(700*time.Millisecond), least(30)),
		torture.Cancellations(application, every(time.Second), least(5)),
		torture.Cuts(s.toPooler, "a producer's", every(2500*time.Millisecond), least(4)),
		torture.Cuts(relays, "a relay's", every(3*time.Second), least(4)),
		torture.Stalls(relays, "a relay's", half.Lease, every(15*time.Second), least(1)),
		torture.Stalls(s.toPooler, "a producer's", half.Lease, every(15*time.Second), least(1)),
		torture.OpenTransactions(3*time.Second, every(12*time.Second), least(2)),
		torture.PreparedTransactions(3*time.Second, every(4*time.Second), least(3)),
		torture.BrokerCuts(s.toBroker, every(9*time.Second), least(2)),
		torture.BrokerStalls(s.toBroker, time.Second, every(20*time.Second), least(1)),
		torture.SlowBroker(s.toBroker, 100*time.Millisecond, time.Second, every(15*time.Second), least(1)),
		s.databaseStops(DatabaseRestart, cluster.Fast, away(25*time.Second), least(1)),
		s.databaseStops(DatabaseCrash, cluster.Immediate, away(25*time.Second), least(1)),
		s.backendKills(away(25*time.Second), least(1)),
		s.poolerRestarts(every(14*time.Second), least(1)),
		s.brokerRestarts(every(15*time.Second), least(1)),
		clockOff(clocks[broker]),
	}
	if broker == PubSub {
		list = append(list, s.droppedAnswers(every(10*time.Second), least(1)))
	}
	return list
}
