package drain

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/posthaste-dev/posthaste/internal/measure"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
)

// Relay drains with one relay in this process, its settings at their defaults.
type Relay struct {
	Env      *Env
	Registry *outbox.Registry
	// NoContractCheck leaves payloads unread, as the bare loop does.
	NoContractCheck bool
}

// RelayToNowhere is the drainer of a relay whose events end in the ledger.
func RelayToNowhere(name string, r Relay) Drainer {
	return Drainer{
		Name: name, Table: OutboxTable, Reads: relayReads,
		Drain: func(ctx context.Context, ledger *Ledger, settled func() error) error {
			return r.drain(ctx, ledgerPublisher(ledger), ledger, settled)
		},
	}
}

// relayReads is in the relay's statement that reads, and in no other.
const relayReads = "pg_visible_in_snapshot"

func ledgerPublisher(ledger *Ledger) publish.Publisher {
	return publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
		ledger.Take(message.Seq, message.AggregateID)
		return nil
	})
}

func (r Relay) drain(ctx context.Context, to publish.Publisher, ledger *Ledger, settled func() error) error {
	url, err := r.Env.URL()
	if err != nil {
		return err
	}
	running, err := relay.New(relay.Config{
		Database: url, Schema: outboxSchema, Registry: r.Registry, Publisher: to, Name: "bench-drain",
		Logger: slog.New(slog.DiscardHandler), BeforeConnect: r.Env.tap.BeforeConnect,
	})
	if err != nil {
		return fmt.Errorf("drain: %w", err)
	}
	ctx, stop := context.WithCancel(measure.With(ctx, measure.Control{NoContractCheck: r.NoContractCheck}))
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- running.Run(ctx) }()
	err = untilSettled(ctx, running, ledger, ended)
	if err == nil {
		err = settled()
	}
	stop()
	return errors.Join(err, <-ended)
}

// untilSettled waits for all events at the publisher and then until nothing is in flight.
func untilSettled(ctx context.Context, running *relay.Relay, ledger *Ledger, ended chan error) error {
	select {
	case <-ledger.Full():
	case err := <-ended:
		ended <- nil
		return fmt.Errorf("drain: the relay ended by itself: %w", err)
	case <-ctx.Done():
		return fmt.Errorf("drain: %w, the relay has %+v", context.Cause(ctx), running.Stats())
	}
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for running.Stats().InFlight > 0 {
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("drain: %w, the relay has %+v", context.Cause(ctx), running.Stats())
		}
	}
	return nil
}
