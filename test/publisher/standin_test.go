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
	"github.com/posthaste-dev/posthaste/relay"
)

// plantVariable names, in the environment of a publisher, what is wrong with the one that stands in for ours.
const plantVariable = "PROOF_PLANT"

// What may be wrong with it.
const (
	plantNothing   = "nothing"
	plantDrops     = "drops"     // acknowledges one event in fifty that it never sent
	plantTwice     = "twice"     // sends one event in fifty once more, a moment later
	plantCharges   = "charges"   // blames the event for an outage
	plantDies      = "dies"      // ends when the broker is away
	plantSulks     = "sulks"     // never tries again when the broker was away
	plantQuits     = "quits"     // ends at once when it is asked to stop
	plantLingers   = "lingers"   // takes long to end
	plantComplains = "complains" // fails when it ends
)

// standIn is a publisher with a mistake: everything is ours but for its broker.
func standIn(plant string) {
	if plant == plantQuits {
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			<-signals
			syscall.Exit(0) //nolint:revive // that is the mistake; os.Exit waits a second for the race detector, and all else goes on meanwhile
		}()
	}
	broker := natsbroker.New()
	open := broker.Open
	broker.Open = func(ctx context.Context, values *config.Values, options daemon.Options) (*daemon.Connection, error) {
		connection, err := open(ctx, values, options)
		if err != nil {
			return nil, err
		}
		connection.Publisher = &planted{plant: plant, inner: connection.Publisher}
		closing := connection.Close
		connection.Close = func() error {
			err := closing()
			switch plant {
			case plantLingers:
				<-time.After(2500 * time.Millisecond)
			case plantComplains:
				err = errors.Join(err, errors.New("it was nice here"))
			}
			return err
		}
		return connection, nil
	}
	daemon.Main(daemon.Program{Brokers: []daemon.Broker{broker}})
}

type planted struct {
	plant  string
	inner  relay.Publisher
	count  atomic.Int64
	sulked atomic.Bool
}

func (p *planted) Publish(ctx context.Context, message *relay.Message) error {
	chosen := p.count.Add(1)%50 == 0
	if p.plant == plantDrops && chosen {
		return nil
	}
	if p.sulked.Load() {
		return &relay.RouteError{Err: errors.New("not again")}
	}
	err := p.inner.Publish(ctx, message)
	away := (*relay.RouteError)(nil)
	switch {
	case p.plant == plantTwice && chosen && err == nil:
		again := *message
		time.AfterFunc(400*time.Millisecond, func() { _ = p.inner.Publish(context.Background(), &again) })
	case !errors.As(err, &away):
	case p.plant == plantCharges:
		return &relay.RejectedError{Err: err}
	case p.plant == plantDies:
		fmt.Fprintln(os.Stderr, "the broker is away, and so am I")
		os.Exit(3) //nolint:revive // that is the mistake
	case p.plant == plantSulks:
		p.sulked.Store(true)
	}
	return err
}
