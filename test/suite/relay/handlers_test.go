package relay

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// A handlerEnv handles the events of a place in the relay's own process, with PostgreSQL's inbox. Nothing in its table
// of effects keeps one from happening twice.
type handlerEnv struct {
	*env
	// fails is asked after the effect and before the commit. Run counts the runs of this event's handler, from 1.
	fails func(event *consumer.Event, run int) error

	mu   sync.Mutex
	runs map[outbox.ID]int
}

func newHandlerEnv(t *testing.T, p *env) *handlerEnv {
	t.Helper()
	if err := schema.Inbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", p.URL), schema.Options{Schema: p.Schema}); err != nil {
		t.Fatal(err)
	}
	p.Exec(t, `CREATE TABLE {schema}.effects (n bigint GENERATED ALWAYS AS IDENTITY, event_id uuid NOT NULL,
		aggregate text NOT NULL, seq bigint NOT NULL)`)
	return &handlerEnv{env: p, runs: map[outbox.ID]int{}}
}

// handle is a handler as docs/guide/relay.md has it.
func (d *handlerEnv) handle(ctx context.Context, event *consumer.Event, _ note) error {
	run := d.ran(event.ID)
	return outbox.InTx(ctx, d.Pool, func(ctx context.Context, tx pgx.Tx) error {
		first, err := inbox.First(ctx, outbox.InSchema(tx, d.Schema), "tester", event.ID)
		if err != nil {
			return err
		}
		if !first {
			return consumer.ErrDuplicate
		}
		_, err = tx.Exec(ctx, d.SQL(`INSERT INTO {schema}.effects (event_id, aggregate, seq)
			VALUES ($1::text::uuid, $2, $3)`), event.ID.String(), event.Key(), event.Seq)
		if err == nil && d.fails != nil {
			err = d.fails(event, run)
		}
		return err
	})
}

func (d *handlerEnv) ran(id outbox.ID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.runs[id]++
	return d.runs[id]
}

func (d *handlerEnv) runsOf(id outbox.ID) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[id]
}

// effects counts those of an event.
func (d *handlerEnv) effects(t testing.TB, id outbox.ID) int {
	t.Helper()
	return d.Count(t, "SELECT count(*) FROM {schema}.effects WHERE event_id = $1::text::uuid", id.String())
}

// publisher hands placed and annotated events to the handlers, and ignores billed ones.
func (d *handlerEnv) publisher(t testing.TB) publish.Publisher {
	t.Helper()
	c, err := consumer.New(consumer.Config{Name: "tester", Logger: slog.New(slog.NewJSONHandler(d.logs, nil))},
		consumer.On(placed, d.handle), consumer.On(annotated, d.handle), consumer.Ignore(billed.Contract().Type))
	if err != nil {
		t.Fatal(err)
	}
	return relay.Handlers(c)
}

// inProcess makes a relay's publisher this one, with a registry of the types that the handlers takes.
func inProcess(t testing.TB, publisher publish.Publisher) func(*relay.Config) {
	t.Helper()
	return func(config *relay.Config) {
		config.Publisher, config.Registry = publisher, registry(t, placed, annotated, billed)
	}
}

// S3, RL-16, IN-3: a handler that fails leaves nothing behind and is run again; in the end there is one effect, the
// failure was charged, and the order of the aggregate was kept.
func TestHandlersHandleOnceThroughARetry(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		d := newHandlerEnv(t, p)
		var failing outbox.ID
		d.fails = func(event *consumer.Event, run int) error {
			switch {
			case event.ID != failing || run > 2:
				return nil
			case run == 1:
				return errors.New("the mail server is down")
			default:
				panic("assignment to entry in nil map")
			}
		}
		ids := p.emit(t, placed.New("1", note{N: 1}), annotated.New("1", note{N: 2}), placed.New("1", note{N: 3}),
			annotated.New("2", note{N: 1}), billed.New("1", note{N: 1}))
		failing = ids[1]
		p.start(t, "a", inProcess(t, d.publisher(t)))
		p.awaitPublished(t, len(ids))
		for i, id := range ids[:4] {
			wantRuns, wantAttempts := 1, 0
			if id == failing {
				wantRuns, wantAttempts = 3, 2
			}
			effects, runs, row := d.effects(t, id), d.runsOf(id), p.row(t, id)
			if effects != 1 || runs != wantRuns || row.attempts != wantAttempts {
				t.Errorf("event %d: %d effects after %d runs, charged as %+v", i, effects, runs, row)
			}
		}
		if effects, runs := d.effects(t, ids[4]), d.runsOf(ids[4]); effects+runs > 0 {
			t.Errorf("an ignored event was handled: %d effects after %d runs", effects, runs)
		}
		rows, err := p.Pool.Query(t.Context(), p.SQL(`SELECT seq FROM {schema}.effects
			WHERE aggregate = 'default/order/1' ORDER BY n`))
		if err != nil {
			t.Fatal(err)
		}
		order, err := pgx.CollectRows(rows, pgx.RowTo[int64])
		if err != nil || len(order) != 3 || !slices.IsSorted(order) {
			t.Errorf("the effects came in the order %v, %v", order, err)
		}
	})
}

// IN-1, IN-3: the effect is there and the relay does not get to know it, as when it dies before it has settled. The
// next run finds the mark.
func TestHandlersHandleOnceWhenTheAnswerIsLost(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		d := newHandlerEnv(t, p)
		inner := d.publisher(t)
		var lost sync.Map
		losing := publish.PublisherFunc(func(ctx context.Context, message *publish.Message) error {
			err := inner.Publish(ctx, message)
			if _, before := lost.LoadOrStore(message.ID, true); err == nil && !before {
				return errors.New("the connection is gone")
			}
			return err
		})
		var ids []outbox.ID
		for i := range 10 {
			ids = append(ids, p.emit(t, placed.New(fmt.Sprint(i), note{N: i}))...)
		}
		p.start(t, "a", inProcess(t, losing))
		p.awaitPublished(t, len(ids))
		for i, id := range ids {
			if effects, runs := d.effects(t, id), d.runsOf(id); effects != 1 || runs != 2 {
				t.Errorf("event %d: %d effects after %d runs", i, effects, runs)
			}
		}
	})
}

// RL-9: what the handler says is never to be handled is dead at once, with its letter and without an effect; what fails
// to its limit is dead then. Neither stops other aggregates.
func TestWhatHandlersCannotHandleIsDead(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		d := newHandlerEnv(t, p)
		d.fails = func(event *consumer.Event, _ int) error {
			switch event.Aggregate.ID {
			case "poison":
				return consumer.Poison(errHostile)
			case "failing":
				return errHostile
			default:
				return nil
			}
		}
		ids := p.emit(t, annotated.New("poison", note{}), annotated.New("failing", note{}), annotated.New("good", note{}))
		p.start(t, "a", inProcess(t, d.publisher(t)), with(func(s *relay.Settings) { s.MaxAttempts = 3 }))
		for i, want := range []struct {
			reason string
			runs   int
		}{{"rejected", 1}, {"max_attempts", 3}} {
			row := p.awaitState(t, ids[i], dead)
			reason, topic, detail := p.letter(t, ids[i])
			if reason != want.reason || topic != "orders" || d.runsOf(ids[i]) != want.runs || d.effects(t, ids[i]) != 0 {
				t.Errorf("dead because of %s on %s after %d runs: %+v", reason, topic, d.runsOf(ids[i]), row)
			}
			wantReadable(t, detail)
		}
		p.awaitState(t, ids[2], published)
	})
}

// RL-6: when every handler fails it is no event's fault: the topic pauses, and all is handled when they work again.
func TestAnOutageOfTheHandlersKillsNobody(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		const events = 20
		d := newHandlerEnv(t, p)
		var fixed atomic.Bool
		d.fails = func(*consumer.Event, int) error {
			if fixed.Load() {
				return nil
			}
			return errors.New("the mail server is down")
		}
		r := p.start(t, "a", inProcess(t, d.publisher(t)))
		eventually.True(t, "all lanes", func() bool { return r.Stats().Lanes == 64 })
		var all []outbox.Event
		for i := range events {
			all = append(all, placed.New(fmt.Sprint(i), note{}))
		}
		ids := p.emit(t, all...) // they come together, so that the first two are not taken for bad ones for long
		eventually.True(t, "a topic that is paused", func() bool { return r.FailingTopics()["orders"] != "" })
		fixed.Store(true)
		p.awaitPublished(t, events)
		for i, id := range ids {
			if effects := d.effects(t, id); effects != 1 {
				t.Errorf("event %d: %d effects", i, effects)
			}
		}
	})
}

// RG-4: an event of a type that the registry does not have is parked, as with every publisher, and no handler sees it.
func TestHandlersNeverSeeAnUnknownType(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p *env) {
		d := newHandlerEnv(t, p)
		ids := p.emit(t, shipped.New("1", note{}), placed.New("2", note{}))
		p.start(t, "a", inProcess(t, d.publisher(t)))
		p.awaitState(t, ids[1], published)
		if row := p.awaitState(t, ids[0], parked); row.attempts != 0 || d.runsOf(ids[0]) != 0 {
			t.Errorf("%d runs, and charged as %+v", d.runsOf(ids[0]), row)
		}
	})
}
