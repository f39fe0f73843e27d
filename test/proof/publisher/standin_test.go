package publisher_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
	"github.com/posthaste-dev/posthaste/publish"
)

// mutantVariable names, in the environment of a publisher, what is wrong with the one that stands in for ours.
const mutantVariable = "PROOF_MUTANT"

// What may be wrong with it.
const (
	mutantNone      = "nothing"
	mutantDrops     = "drops"     // acknowledges one event in fifty that it never sent
	mutantTwice     = "twice"     // sends one event in fifty once more, a moment later
	mutantCharges   = "charges"   // blames the event for an outage
	mutantDies      = "dies"      // ends when the broker is away
	mutantSulks     = "sulks"     // never tries again when the broker was away
	mutantQuits     = "quits"     // ends at once when it is asked to stop
	mutantLingers   = "lingers"   // takes long to end
	mutantComplains = "complains" // fails when it ends
)

// standIn is a publisher with a mistake: everything is ours but for its broker.
func standIn(mutant string) {
	if mutant == mutantQuits {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			<-signals
			// os.Exit would wait a second for the race detector, and all else would go on meanwhile.
			syscall.Exit(0) //nolint:revive // that is the mistake
		}()
	}
	broker := natsbroker.New()
	open := broker.Open
	broker.Open = func(ctx context.Context, values *config.Values, options daemon.Options) (*daemon.Connection, error) {
		connection, err := open(ctx, values, options)
		if err != nil {
			return nil, err
		}
		connection.Publisher = &mutantPublisher{mutant: mutant, inner: connection.Publisher}
		closing := connection.Close
		connection.Close = func() error {
			err := closing()
			switch mutant {
			case mutantLingers:
				<-time.After(2500 * time.Millisecond)
			case mutantComplains:
				err = errors.Join(err, errors.New("it was nice here"))
			}
			return err
		}
		return connection, nil
	}
	daemon.Main(daemon.Program{Brokers: []daemon.Broker{broker}})
}

type mutantPublisher struct {
	mutant string
	inner  publish.Publisher
	count  atomic.Int64
	sulked atomic.Bool
}

func (p *mutantPublisher) Publish(ctx context.Context, message *publish.Message) error {
	chosen := p.count.Add(1)%50 == 0
	if p.mutant == mutantDrops && chosen {
		return nil
	}
	if p.sulked.Load() {
		return &publish.TopicError{Err: errors.New("not again")}
	}
	err := p.inner.Publish(ctx, message)
	away := (*publish.TopicError)(nil)
	switch {
	case p.mutant == mutantTwice && chosen && err == nil:
		again := *message
		time.AfterFunc(400*time.Millisecond, func() { _ = p.inner.Publish(context.Background(), &again) })
	case !errors.As(err, &away):
	case p.mutant == mutantCharges:
		return &publish.RejectedError{Err: err}
	case p.mutant == mutantDies:
		fmt.Fprintln(os.Stderr, "the broker is away, and so am I")
		os.Exit(3) //nolint:revive // that is the mistake
	case p.mutant == mutantSulks:
		p.sulked.Store(true)
	}
	return err
}
