package hostile

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Broker is one of the brokers.
type Broker string

// The brokers.
const (
	NATS   Broker = "nats"
	PubSub Broker = "pubsub"
)

// An outlet is an outbox with a relay of its own, a topic, and somebody who reads the topic.
type outlet struct {
	broker   Broker
	schema   string
	topic    string
	pool     *pgxpool.Pool
	bell     *outbox.Doorbell
	arrivals *arrivals
	logs     *logBook
	troubles *troubles
	inputs   atomic.Int64

	config   relay.Config
	stop     context.CancelFunc
	running  sync.WaitGroup
	restarts atomic.Int64
	closers  []func(context.Context) error
}

// number counts inputs, for names that no other input has.
func (o *outlet) number() int64 { return o.inputs.Load() }

// open makes an outlet and starts its relay. The publisher is wrapped for troubles where the outlet is to have them,
// and for a mutant.
func (w *env) open(ctx context.Context, on Broker, name string, troubled bool, plan Plan) (*outlet, error) {
	o := &outlet{
		broker: on, schema: w.run + "_" + name, topic: w.run + "_" + name, arrivals: newArrivals(), logs: &logBook{},
	}
	w.outlets = append(w.outlets, o)
	if err := w.migrate(ctx, o.schema); err != nil {
		return nil, err
	}
	config, err := pgxpool.ParseConfig(w.url)
	if err != nil {
		return nil, errors.New("hostile: the database's address is no URL")
	}
	config.ConnConfig.RuntimeParams["search_path"] = ""
	config.MaxConns = 4
	if o.pool, err = pgxpool.NewWithConfig(ctx, config); err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	o.bell = outbox.NewDoorbell(outbox.RingPgx(o.pool, o.schema))
	connect := o.connectNATS
	if on == PubSub {
		connect = o.connectPubSub
	}
	publisher, err := connect(ctx, w.servers)
	if err != nil {
		return nil, err
	}
	if troubled {
		o.troubles = newTroubles()
		publisher = o.troubles.before(publisher)
	}
	if plan.Wrap != nil {
		publisher = plan.Wrap(publisher)
	}
	if plan.Spoil != nil {
		exec := func(statement string) error {
			_, err := o.pool.Exec(ctx, statement)
			return err
		}
		if err := plan.Spoil(ctx, exec, o.schema); err != nil {
			return nil, fmt.Errorf("hostile: make a mutant: %w", err)
		}
	}
	known, err := registry(o.topic)
	if err != nil {
		return nil, err
	}
	o.config = relay.Config{
		// Retries are quick, so that events which fail have ended when the run does.
		Settings: relay.Settings{
			BaseDelay: 100 * time.Millisecond, MaxDelay: time.Second, MaxInFlight: 500, Lease: plan.Lease, Drain: plan.Patience,
		},
		Database: w.url, Schema: o.schema, Registry: known, Publisher: publisher, Name: o.schema, LogPublished: true,
		Logger: slog.New(slog.NewJSONHandler(o.logs, &slog.HandlerOptions{Level: slog.LevelDebug})),
	}
	return o, o.start(ctx)
}

// start runs the relay, and starts it again when it ends by itself, which it must not.
func (o *outlet) start(ctx context.Context) error {
	ctx, o.stop = context.WithCancel(ctx)
	made, err := relay.New(o.config)
	if err != nil {
		return fmt.Errorf("hostile: %w", err)
	}
	o.running.Go(func() {
		for {
			err := made.Run(ctx)
			if ctx.Err() != nil {
				return
			}
			o.restarts.Add(1)
			o.config.Logger.ErrorContext(ctx, "the relay ended by itself", slog.Any("error", err))
			if o.restarts.Load() > 3 {
				return
			}
		}
	})
	return nil
}

// halt stops the relay: what it has done is then in the tables and in the logs.
func (o *outlet) halt() {
	if o.stop != nil {
		o.stop()
	}
	o.running.Wait()
}

func (o *outlet) close() error {
	o.halt()
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Patience)
	defer cancel()
	var problems []error
	for _, closer := range slices.Backward(o.closers) {
		problems = append(problems, closer(ctx))
	}
	if o.bell != nil {
		o.bell.Close()
	}
	if o.pool != nil {
		o.pool.Close()
	}
	return errors.Join(problems...)
}

func (o *outlet) begin(ctx context.Context) (pgx.Tx, error) {
	tx, err := o.pool.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	return tx, nil
}
