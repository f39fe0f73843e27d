package drain

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// Costs are what an event costs the database, counted. All but Relay is counted with the same number of events at a
// time, so that two runs of the same code agree.
type Costs struct {
	Server, WALLevel string
	// EmitWAL are the bytes of an event that is alone in its transaction, EmitTrips the round trips of its statement.
	EmitWAL, EmitTrips float64
	// ReadPages, SettlePages and SettleWAL are those of an event among a thousand of all lanes, by the relay's own
	// statements.
	ReadPages, SettlePages, SettleWAL float64
	// Relay is what a whole drain by a relay comes to. How much it takes at once depends on the machine.
	Relay Counts
}

const (
	costEmits = 300 // transactions
	costReads = 3
	costEach  = 16 // events of a lane: a thousand of all
	// CostEvents are as many as have so many in each lane, and some more.
	CostEvents = 5000
)

// Costs counts. It needs the database for itself.
func (w *Env) Costs(ctx context.Context) (c Costs, err error) {
	if err := w.DB.Control.QueryRow(ctx,
		"SELECT 'PostgreSQL ' || current_setting('server_version'), current_setting('wal_level')").
		Scan(&c.Server, &c.WALLevel); err != nil {
		return c, fmt.Errorf("drain: server: %w", err)
	}
	meter, err := bench.NewWALMeter(ctx, w.DB)
	if err != nil {
		return c, err
	}
	if err := w.countEmits(ctx, meter, &c); err != nil {
		return c, err
	}
	template, err := w.Template(ctx, "costs", CostEvents, 0)
	if err != nil {
		return c, err
	}
	registry, err := Registry(Topic, false)
	if err != nil {
		return c, err
	}
	turn, err := w.Count(ctx, template, RelayToNowhere("relay", Relay{Env: w, Registry: registry}))
	if err != nil {
		return c, err
	}
	c.Relay = *turn.Counts
	if err := w.Refill(ctx, template, OutboxTable); err != nil {
		return c, err
	}
	return c, w.countBatches(ctx, meter, &c)
}

// countEmits emits events one by one.
func (w *Env) countEmits(ctx context.Context, meter *bench.WALMeter, c *Costs) error {
	conn, err := w.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	draws, trips := newDraws(0), 0
	emit := func(ctx context.Context) error {
		return pgx.BeginFunc(ctx, conn, func(tx pgx.Tx) error {
			before := w.tap.Count()
			_, err := outbox.Emit(ctx, tx, draws.event())
			trips += w.tap.Count() - before
			return err
		})
	}
	if err := emit(ctx); err != nil { // the first prepares the statement
		return fmt.Errorf("drain: emit: %w", err)
	}
	trips = 0
	wal, err := meter.Measure(ctx, func(ctx context.Context) error {
		for range costEmits {
			if err := emit(ctx); err != nil {
				return fmt.Errorf("drain: emit: %w", err)
			}
		}
		return nil
	})
	c.EmitWAL, c.EmitTrips = float64(wal.Data())/costEmits, float64(trips)/costEmits
	return err
}

// countBatches reads and settles batches by the statements that a relay was heard to use.
func (w *Env) countBatches(ctx context.Context, meter *bench.WALMeter, c *Costs) error {
	statements, err := bench.StatementsOf(&w.tap, outboxSchema)
	if err != nil {
		return err
	}
	all := make([]int16, lanes)
	for i := range all {
		all[i] = int16(i + 1)
	}
	holder, err := bench.NewHolder(ctx, w.DB, outboxSchema, statements, all...)
	if err != nil {
		return err
	}
	conn, err := w.Connect(ctx)
	if err != nil {
		return err
	}
	defer conn.Close(ctx)
	if err := w.DB.CountPages(ctx); err != nil {
		return err
	}
	events, wal := 0, int64(0)
	for range costReads {
		batch, err := holder.Read(ctx, conn, costEach)
		if err != nil {
			return err
		}
		if len(batch) != lanes*costEach {
			return fmt.Errorf("drain: %d events of %d lanes, want %d of each", len(batch), lanes, costEach)
		}
		holder.Pass(batch)
		written, err := meter.Measure(ctx, func(ctx context.Context) error { return holder.Settle(ctx, conn, batch) })
		if err != nil {
			return err
		}
		events, wal = events+len(batch), wal+written.Data()
	}
	read, err := w.DB.PagesOf(ctx, relayReads)
	if err != nil {
		return err
	}
	settle, err := w.DB.PagesOf(ctx, settleText)
	c.ReadPages, c.SettlePages, c.SettleWAL = read.Each(events), settle.Each(events), float64(wal)/float64(events)
	return err
}
