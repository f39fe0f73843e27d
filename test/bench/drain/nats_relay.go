package drain

import (
	"context"
	"errors"
	"fmt"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/publish"
)

// RelayToNATS is the drainer of a relay with the adapter that we ship.
func (n *NATS) RelayToNATS(name string, r Relay) Drainer {
	return Drainer{
		Name: name, Table: OutboxTable, Reads: relayReads, Broker: n.prepare, BrokerProcess: n.process,
		Drain: func(ctx context.Context, ledger *Ledger, settled func() error) error {
			conn, err := natsjetstream.Connect(n.url)
			if err != nil {
				return fmt.Errorf("drain: NATS: %w", err)
			}
			defer conn.Close()
			publisher, err := natsjetstream.NewPublisher(conn, natsjetstream.PublisherConfig{Stream: n.name})
			if err != nil {
				return fmt.Errorf("drain: NATS: %w", err)
			}
			err = r.drain(ctx, counted{publisher, ledger}, ledger, settled)
			return errors.Join(err, publisher.Close())
		},
	}
}

// counted notes in the ledger what the broker has acknowledged.
type counted struct {
	publish.Publisher
	ledger *Ledger
}

// Publish publishes and then notes.
func (c counted) Publish(ctx context.Context, message *publish.Message) error {
	if err := c.Publisher.Publish(ctx, message); err != nil {
		return err
	}
	c.ledger.Take(message.Seq, message.AggregateID)
	return nil
}
