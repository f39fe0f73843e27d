package crash

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

// producer writes events as an application does: the business row is locked, changed, and its events are
// emitted, in one transaction. It writes down what it is about to commit, and what it was told.
type producer struct {
	run       string // the schema
	name      string // of this process: keys begin with it
	pool      *pgxpool.Pool
	contracts contracts
	history   *check.Writer
	count     int
	before    int  // transactions of others, whose things come first
	poisoned  bool // the first event is poison
}

// eventsOfATransaction is how many events one transaction has: two changes and a note of one thing.
const eventsOfATransaction = 3

// things is how many aggregates there are.
const things = 16

// produce writes at least this many events.
func (p *producer) produce(ctx context.Context, events int) error {
	for written := 0; written < events; written += eventsOfATransaction {
		if err := p.transact(ctx); err != nil {
			return fmt.Errorf("crash: a producer: %w", err)
		}
	}
	return nil
}

// transact runs one transaction. The last two of ten things have events that fail.
func (p *producer) transact(ctx context.Context) error {
	p.count++
	key, thing := fmt.Sprintf("%s-%d", p.name, p.count), fmt.Sprintf("thing-%d", (p.before+p.count)%things)
	err := outbox.InTx(ctx, p.pool, func(ctx context.Context, tx pgx.Tx) error {
		var version uint64
		err := tx.QueryRow(ctx, fmt.Sprintf(`INSERT INTO %s.torture_things AS t (id, version) VALUES ($1, 1)
			ON CONFLICT (id) DO UPDATE SET version = t.version + 1 RETURNING version`, p.run), thing).Scan(&version)
		if err != nil {
			return err
		}
		if _, err := tx.Exec(ctx, fmt.Sprintf("INSERT INTO %s.torture_done (key) VALUES ($1)", p.run), key); err != nil {
			return err
		}
		events, known, err := p.events(thing, version)
		if err != nil {
			return err
		}
		// Written down before it is sent: whoever dies from here on leaves a transaction that may have happened.
		if err := p.history.Add(check.Record{Tx: &check.Tx{Key: key, Events: known}}); err != nil {
			return err
		}
		_, err = outbox.Emit(ctx, outbox.InSchema(tx, p.run), events...)
		return err
	})
	if err != nil {
		return err
	}
	return p.history.Add(check.Record{Tx: &check.Tx{Key: key, Outcome: check.OK}})
}

// events are those of one transaction, for the outbox and for the checker.
func (p *producer) events(thing string, version uint64) (events []outbox.Event, known []check.Event, err error) {
	dispositions := [eventsOfATransaction]disposition{}
	contract := p.contracts.changed
	switch {
	case p.poisoned && p.count == 1: // nothing before it moves the floor of its lane
		dispositions[0] = poison
	case p.count%23 == 7:
		dispositions[0] = slow
	case p.count%29 == 11:
		dispositions[1] = terminal
	case p.count%31 == 5:
		dispositions[2] = terminal
	case p.count%37 == 3:
		dispositions[2] = stubborn
	case p.count%19 == 13:
		contract = p.contracts.renamed
	}
	for i, c := range []*outbox.ContractFor[body]{p.contracts.changed, contract, p.contracts.annotated} {
		b := body{Version: version, Disposition: dispositions[i]}
		event := c.New(thing, b)
		event.ID, event.OccurredAt = outbox.NewID(), time.Now()
		bytes, err := payload(event.ID, event.OccurredAt, b)
		if err != nil {
			return nil, nil, err
		}
		events = append(events, event)
		known = append(known, check.Event{
			ID: event.ID, Type: c.Contract().Type, Topic: c.Contract().Topic, Aggregate: aggregateType + "/" + thing,
			Key: aggregateType + "/" + thing, Version: version, Payload: check.SumOf(bytes),
		})
	}
	return events, known, nil
}
