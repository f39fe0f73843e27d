package pinned

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/jackc/pgx/v5"
	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// The relays of a day, which share the lanes.
const (
	dayRelays = 8
	// BeatsOfADay are those of one relay: one in a third of the default lease.
	BeatsOfADay = 24 * 60 * 60 / 10
)

// Day is what relays do all the time, with and without a day of beats that nobody could clear away.
type Day struct {
	Beats int // of each relay
	Steps []Step
	// Control looks at every beat. It must cost more than a step may, or nothing was shown.
	Control Step
}

// Step is one of the things that relays do.
type Step struct {
	Name string
	// Fresh and Aged are the pages that it looks at, on average.
	Fresh, Aged float64
	// Lookups is how many of them may be on the way to beats, beyond the one page on which all of a fresh table stand.
	Lookups int
	// Time is its median time after a day against that without, and Same that of the same without, twice.
	Time, Same bench.Ratio
}

const maxAged = 1.5 // times the pages without a day

// ratio is that of the pages, without those that lead to beats.
func (s Step) ratio() float64 { return max(s.Aged-float64(s.Lookups), 0) / s.Fresh }

// dayEnv is a database with relays in it.
type dayEnv struct {
	*bench.Outbox
	conn    *pgx.Conn
	holders []*bench.Holder // the last of them is dead
}

const (
	dayEach  = 4 // events of a lane that are read and settled at a time
	dayBlock = 5 // times that a step is done in a turn
	// dayAggregates are enough for all lanes to have about as many.
	dayAggregates = 10_000
)

// dayEvents are enough for all settles of the run, also in a lane that gets fewer than others.
func (p Plan) dayEvents() int {
	settles := dayBlock * (4*p.DayRounds + 3)
	return lanes * dayEach * settles * 3 / 2
}

// day makes the beats of a day under a held snapshot, and compares that database with one that has no such day.
func (r *run) day(ctx context.Context) (_ *Day, err error) {
	if r.plan.Beats == 0 {
		return &Day{}, nil
	}
	fresh, err := newDayEnv(ctx, r.plan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, fresh.close()) }()
	aged, err := newDayEnv(ctx, r.plan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, aged.close()) }()
	db := &database{aged.Outbox}
	held, err := db.snapshot(ctx)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, held.close()) }()
	r.sayf("%d beats of each of %d relays under a held snapshot; a day has %d", r.plan.Beats, dayRelays, BeatsOfADay)
	if err := errors.Join(aged.live(ctx, r.plan.Beats), fresh.live(ctx, 2)); err != nil {
		return nil, err
	}
	r.sayf("what relays do, with that and without")
	return r.compareDays(ctx, fresh, aged)
}

// compareDays counts pages first: what is timed does its work many times, and leaves more behind than it found.
func (r *run) compareDays(ctx context.Context, fresh, aged *dayEnv) (found *Day, err error) {
	found = &Day{Beats: r.plan.Beats, Steps: make([]Step, len(daySteps))}
	for i, s := range daySteps {
		if found.Steps[i], err = s.pages(ctx, fresh, aged); err != nil {
			return nil, err
		}
	}
	if found.Control, err = everyBeat.pages(ctx, fresh, aged); err != nil {
		return nil, err
	}
	for i, s := range daySteps {
		if err := s.times(ctx, &found.Steps[i], fresh, aged, r.plan.DayRounds); err != nil {
			return nil, err
		}
	}
	return found, nil
}

// newDayEnv makes a database with relays that have one beat each.
func newDayEnv(ctx context.Context, plan Plan) (_ *dayEnv, err error) {
	made, err := bench.NewOutbox(ctx, plan.URL, 1)
	if err != nil {
		return nil, err
	}
	e := &dayEnv{Outbox: made}
	if err := e.prepare(ctx, plan); err != nil {
		return nil, errors.Join(err, e.close())
	}
	return e, nil
}

func (e *dayEnv) close() error {
	if e.conn != nil {
		_ = e.conn.Close(context.Background()) // the database goes with it
	}
	return e.Close()
}

func (e *dayEnv) prepare(ctx context.Context, plan Plan) error {
	for _, table := range []string{"outbox_relays", "outbox_beats", "outbox_lanes", "outbox_events"} {
		if err := e.Exec(ctx, "ALTER TABLE public."+table+" SET (autovacuum_enabled = off)"); err != nil {
			return err
		}
	}
	statements, err := e.learn(ctx)
	if err != nil {
		return err
	}
	if _, err := e.Control.Exec(ctx, statement("insert_dead"), plan.dayEvents(), dayAggregates); err != nil {
		return fmt.Errorf("pinned: events: %w", err)
	}
	if err := e.Exec(ctx, "DELETE FROM public.outbox_relays", "VACUUM ANALYZE"); err != nil {
		return err
	}
	for i := range dayRelays {
		var share []int16
		for lane := i; lane < lanes; lane += dayRelays {
			share = append(share, int16(lane+1))
		}
		holder, err := bench.NewHolder(ctx, e.Database, outbox.DefaultSchema, statements, share...)
		if err != nil {
			return err
		}
		e.holders = append(e.holders, holder)
	}
	e.conn, err = e.connect(ctx)
	return err
}

// connect opens a session as a relay has it.
func (e *dayEnv) connect(ctx context.Context) (*pgx.Conn, error) {
	config, err := e.Config("bench-day")
	if err != nil {
		return nil, err
	}
	config.RuntimeParams["jit"] = "off"
	config.RuntimeParams["synchronous_commit"] = "off" // no flush is compared
	conn, err := pgx.ConnectConfig(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("pinned: connect: %w", err)
	}
	return conn, nil
}

// learn hears from a relay which statements it uses, and leaves the database as if it had not been there.
func (e *dayEnv) learn(ctx context.Context) (bench.Statements, error) {
	registry, err := outbox.NewRegistry(moved())
	if err != nil {
		return bench.Statements{}, err
	}
	tap, published := &bench.Tap{}, make(chan struct{})
	heard, err := relay.New(relay.Config{
		Database: e.URL, Registry: registry, Name: "bench-heard", BeforeConnect: tap.BeforeConnect,
		Logger: slog.New(slog.DiscardHandler),
		Publisher: publish.PublisherFunc(func(context.Context, *publish.Message) error {
			close(published) // there is one event
			return nil
		}),
	})
	if err != nil {
		return bench.Statements{}, err
	}
	err = pgx.BeginFunc(ctx, e.Producers, func(tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, tx, moved().New(probeThing, body{}))
		return err
	})
	if err != nil {
		return bench.Statements{}, fmt.Errorf("pinned: emit: %w", err)
	}
	ctx, stop := context.WithTimeout(ctx, hung)
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- heard.Run(ctx) }()
	select {
	case <-published: // it settles that before it ends
	case <-ctx.Done():
	}
	stop()
	if err := <-ended; err != nil {
		return bench.Statements{}, fmt.Errorf("pinned: a relay to hear: %w", err)
	}
	return bench.StatementsOf(tap, outbox.DefaultSchema)
}

// live lets the relays beat, and the last of them die. After the first beats, and again at the end, the tables are
// analysed, as autovacuum does every few minutes: it lets sessions plan anew, who have planned for an empty table.
func (e *dayEnv) live(ctx context.Context, beats int) error {
	const first = 50 // as many changes as autovacuum waits for
	for _, n := range []int{min(first, beats), max(beats-first, 0)} {
		if err := e.beat(ctx, n, 24*time.Hour, e.holders...); err != nil {
			return err
		}
		if err := e.Exec(ctx, "ANALYZE public.outbox_beats"); err != nil {
			return err
		}
	}
	return e.beat(ctx, 1, 0, e.holders[dayRelays-1])
}

// beat lets relays beat so often, side by side.
func (e *dayEnv) beat(ctx context.Context, beats int, lease time.Duration, holders ...*bench.Holder) error {
	group, limited := errgroup.WithContext(ctx)
	for _, holder := range holders {
		group.Go(func() error {
			conn, err := e.connect(limited)
			if err != nil {
				return err
			}
			defer conn.Close(ctx)
			for range beats {
				if err := holder.Beat(limited, conn, lease); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}
