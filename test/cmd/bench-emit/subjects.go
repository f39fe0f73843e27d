package main

import (
	"context"
	"database/sql"
	"fmt"
	"maps"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"
	"gorm.io/driver/postgres"
	"gorm.io/gorm"
	"gorm.io/gorm/logger"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// The subjects by name. An "again" is the same code a second time: the A/A control.
const (
	bare          = "bare INSERT"
	bareAgain     = "bare INSERT again"
	noEvent       = "no event"
	emitOne       = "emit"
	emitKeyed     = "emit, dedupe key"
	emitFunction  = "outbox_emit()"
	bareSQL       = "database/sql: bare INSERT"
	emitSQL       = "database/sql: emit"
	bareGORM      = "GORM: bare INSERT"
	emitGORM      = "GORM: emit"
	bareMany      = "100-row INSERT, VALUES"
	bareManyAgain = "100-row INSERT, VALUES again"
	bareUnnest    = "100-row INSERT, unnest"
	emitMany      = "emit of 100 events"
	emitManyKeyed = "emit of 100 events, dedupe keys"
)

const manyEvents = 100

var (
	insertOrder   = statement("insert_order", "")
	updateAccount = statement("update_account", "")
	insertBare    = statement("insert_bare", "")
	insertUnnest  = statement("insert_bare_unnest", "")
	insertMany    = func() string {
		places := make([]string, manyEvents)
		for i := range places {
			places[i] = "($" + strconv.Itoa(i+1) + ")"
		}
		return strings.Replace(insertBare, "($1)", strings.Join(places, ", "), 1)
	}()
	callFunction = statement("call_function", outboxSchema)
)

// transaction is one unit of work of a subject.
type transaction func(context.Context, *bench.Client) error

// drivers are the ways into the database, for one number of clients.
type drivers struct {
	w    *env
	pool *pgxpool.Pool
	std  *sql.DB
	orm  *gorm.DB
}

// open makes connections under this application_name, by which the CPU meter finds them.
func (w *env) open(ctx context.Context, application string, clients int) (*drivers, error) {
	d := &drivers{w: w}
	var err error
	if d.pool, err = w.db.Pool(ctx, application, clients); err != nil {
		return nil, err
	}
	config, err := w.db.Config(application)
	if err != nil {
		return nil, err
	}
	d.std = stdlib.OpenDB(*config)
	d.std.SetMaxOpenConns(clients)
	d.std.SetMaxIdleConns(clients)
	d.orm, err = gorm.Open(postgres.New(postgres.Config{Conn: d.std}), &gorm.Config{Logger: logger.Discard})
	if err != nil {
		return nil, fmt.Errorf("open GORM: %w", err)
	}
	return d, nil
}

func (d *drivers) close() {
	d.pool.Close()
	_ = d.std.Close() // the database is dropped next
}

// subjects are the transactions by name.
func (d *drivers) subjects() map[string]transaction {
	all := map[string]transaction{
		noEvent:       d.business(func(context.Context, pgx.Tx, order) error { return nil }),
		bare:          d.business(bareInsert),
		bareAgain:     d.business(bareInsert),
		emitOne:       d.business(emitEvent),
		emitKeyed:     d.business(emitKeyedEvent),
		emitFunction:  d.business(emitByFunction),
		bareSQL:       d.businessSQL(bareInsertSQL),
		emitSQL:       d.businessSQL(emitEventSQL),
		bareGORM:      d.businessGORM(bareInsertGORM),
		emitGORM:      d.businessGORM(emitEventGORM),
		bareMany:      d.hundred(bareInsertMany),
		bareManyAgain: d.hundred(bareInsertMany),
		bareUnnest:    d.hundred(bareInsertUnnest),
		emitMany:      d.hundred(emitEvents),
		emitManyKeyed: d.hundred(emitKeyedEvents),
	}
	maps.Copy(all, d.bounds())
	return all
}

// business is a transaction of three statements, of which the third writes the event.
func (d *drivers) business(event func(context.Context, pgx.Tx, order) error) transaction {
	return func(ctx context.Context, client *bench.Client) error {
		o := d.w.order(client)
		return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error {
			if _, err := tx.Exec(ctx, insertOrder, o.OrderID.String(), o.AccountID, o.Amount); err != nil {
				return err
			}
			if _, err := tx.Exec(ctx, updateAccount, o.AccountID, o.Amount); err != nil {
				return err
			}
			return event(ctx, tx, o)
		})
	}
}

func bareInsert(ctx context.Context, tx pgx.Tx, o order) error {
	payload, err := o.payload()
	if err != nil {
		return err
	}
	_, err = tx.Exec(ctx, insertBare, payload)
	return err
}

func emitEvent(ctx context.Context, tx pgx.Tx, o order) error {
	return emitInto(outboxSchema)(ctx, tx, o)
}

func emitInto(schema string) func(context.Context, pgx.Tx, order) error {
	return func(ctx context.Context, tx pgx.Tx, o order) error {
		_, err := outbox.Emit(ctx, outbox.InSchema(tx, schema), o.event())
		return err
	}
}

func emitKeyedEvent(ctx context.Context, tx pgx.Tx, o order) error {
	_, err := outbox.Emit(ctx, tx, o.keyed())
	return err
}

func emitByFunction(ctx context.Context, tx pgx.Tx, o order) error {
	contract := contracts[o.kind].Contract()
	data, err := o.data()
	if err != nil {
		return err
	}
	var id string
	return tx.QueryRow(ctx, callFunction, contract.Type, contract.Aggregate, o.AccountID, data).Scan(&id)
}

// hundred is a transaction of 100 events and nothing else, so that nothing dilutes their cost.
func (d *drivers) hundred(events func(context.Context, pgx.Tx, []order) error) transaction {
	return func(ctx context.Context, client *bench.Client) error {
		orders := make([]order, manyEvents)
		for i := range orders {
			orders[i] = d.w.order(client)
		}
		return pgx.BeginFunc(ctx, d.pool, func(tx pgx.Tx) error { return events(ctx, tx, orders) })
	}
}

func bareInsertMany(ctx context.Context, tx pgx.Tx, orders []order) error {
	payloads := make([]any, len(orders))
	for i, o := range orders {
		payload, err := o.payload()
		if err != nil {
			return err
		}
		payloads[i] = payload
	}
	_, err := tx.Exec(ctx, insertMany, payloads...)
	return err
}

func bareInsertUnnest(ctx context.Context, tx pgx.Tx, orders []order) error {
	payloads := make([]string, len(orders))
	for i, o := range orders {
		payload, err := o.payload()
		if err != nil {
			return err
		}
		payloads[i] = payload
	}
	_, err := tx.Exec(ctx, insertUnnest, payloads)
	return err
}

func emitEvents(ctx context.Context, tx pgx.Tx, orders []order) error {
	return emitAllInto(outboxSchema)(ctx, tx, orders)
}

func emitAllInto(schema string) func(context.Context, pgx.Tx, []order) error {
	return func(ctx context.Context, tx pgx.Tx, orders []order) error {
		events := make([]outbox.Event, len(orders))
		for i, o := range orders {
			events[i] = o.event()
		}
		_, err := outbox.Emit(ctx, outbox.InSchema(tx, schema), events...)
		return err
	}
}

func emitKeyedEvents(ctx context.Context, tx pgx.Tx, orders []order) error {
	events := make([]outbox.Event, len(orders))
	for i, o := range orders {
		events[i] = o.keyed()
	}
	_, err := outbox.Emit(ctx, tx, events...)
	return err
}
