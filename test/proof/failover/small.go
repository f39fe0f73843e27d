package failover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// The arms below need no load: a relay in this process, and a publisher that remembers.

type placed struct {
	N int `json:"n"`
}

var orderPlaced = outbox.Define[placed](outbox.Contract{Type: "order_placed", Aggregate: "order", Topic: "orders"})

// small is an outbox in a cluster, a relay, and what it sent and said.
type small struct {
	pool  *pgxpool.Pool
	lease time.Duration // of its relays

	mu   sync.Mutex
	sent map[outbox.ID]int
	list []outbox.ID // as they were sent
	log  bytes.Buffer
}

// leaseOfSmall is long. Nobody waits for its end: who stops gives its lanes back. Whoever loses a lane sends again, and
// a third of it is what a call and the count of a paused relay may take.
const leaseOfSmall = time.Minute

func newSmall(ctx context.Context, c *cluster.Cluster) (*small, error) {
	pool, err := pgxpool.New(ctx, c.URL())
	if err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	return &small{pool: pool, lease: leaseOfSmall, sent: map[outbox.ID]int{}}, nil
}

func (s *small) install(ctx context.Context) error {
	std := stdlib.OpenDBFromPool(s.pool)
	defer std.Close() // the pool stays
	if err := schema.Outbox.Up(ctx, std, schema.Options{}); err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	return nil
}

// emit writes so many events, each of an aggregate of its own.
func (s *small) emit(ctx context.Context, count int) (ids []outbox.ID, err error) {
	err = outbox.InTx(ctx, s.pool, func(ctx context.Context, tx pgx.Tx) error {
		ids, err = emitOf(ctx, tx, "", count)
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	return ids, nil
}

// emitOf writes one event for each of so many aggregates, whose names begin so.
func emitOf(ctx context.Context, tx pgx.Tx, prefix string, count int) (ids []outbox.ID, err error) {
	for n := range count {
		event := orderPlaced.New(fmt.Sprint(prefix, n), placed{N: n})
		event.ID = outbox.NewID()
		ids = append(ids, event.ID)
		if _, err := outbox.Emit(ctx, tx, event); err != nil {
			return nil, err
		}
	}
	return ids, nil
}

// Write takes the relay's log.
func (s *small) Write(line []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.log.Write(line)
}

func (s *small) said(words string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return bytes.Contains(s.log.Bytes(), []byte(words))
}

func (s *small) sentOf(ids []outbox.ID) (count int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, id := range ids {
		count += s.sent[id]
	}
	return count
}

// running is a relay of this process.
type running struct {
	*relay.Relay
	end  context.CancelFunc
	done chan error
}

// run starts a relay.
func (s *small) run(ctx context.Context, c *cluster.Cluster, window time.Duration) (*running, error) {
	return s.runVia(ctx, c.URL(), c.URL(), window)
}

// runVia starts a relay that goes this way to the database, and that way to the doorbell.
func (s *small) runVia(ctx context.Context, database, listen string, window time.Duration) (*running, error) {
	registry, err := outbox.NewRegistry(orderPlaced)
	if err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	made, err := relay.New(relay.Config{
		Database: database, ListenDatabase: listen, Registry: registry, Logger: slog.New(slog.NewJSONHandler(s, nil)),
		Settings: relay.Settings{Lease: s.lease, Poll: 100 * time.Millisecond, FailoverWindow: window},
		Publisher: publish.PublisherFunc(func(_ context.Context, message *publish.Message) error {
			s.mu.Lock()
			defer s.mu.Unlock()
			s.sent[message.ID]++
			s.list = append(s.list, message.ID)
			return nil
		}),
	})
	if err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	ctx, cancel := context.WithCancel(ctx)
	r := &running{Relay: made, end: cancel, done: make(chan error, 1)}
	go func() { r.done <- made.Run(ctx) }()
	return r, nil
}

// stop ends the relay. Called again, it does nothing.
func (r *running) stop() error {
	r.end()
	err, ended := <-r.done
	if ended {
		close(r.done)
	}
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	return nil
}

// Standby is what came of a relay that was pointed at a standby.
type Standby struct {
	// Named: it said what is wrong. Patient: it went on waiting. Served: promoted, its events were published.
	Named, Patient, Served bool
}

// standby points a relay at a standby, which is promoted later (C21).
func (p *Proof) standby(ctx context.Context) (_ *Standby, err error) {
	clusters, err := newPair(ctx, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, clusters.close()) }()
	s, err := newSmall(ctx, clusters.primary)
	if err != nil {
		return nil, err
	}
	defer s.pool.Close()
	if err := s.install(ctx); err != nil {
		return nil, err
	}
	ids, err := s.emit(ctx, 10)
	if err != nil {
		return nil, err
	}
	err = eventually.Within(ctx, eventually.Patience, "the standby has the events", func() (bool, error) {
		n, err := clusters.standby.Text(ctx, "SELECT count(*) FROM outbox_events")
		return n == fmt.Sprint(len(ids)), err
	})
	if err != nil {
		return nil, err
	}
	r, err := s.run(ctx, clusters.standby, 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	result := &Standby{}
	if err := eventually.Within(ctx, eventually.Patience, "the relay names the standby",
		func() (bool, error) { return s.said("the database is a standby"), nil }); err != nil {
		return result, nil // the result tells
	}
	result.Named = true
	result.Patient = len(r.done) == 0 && s.sentOf(ids) == 0
	if err := clusters.primary.Stop(ctx, cluster.Fast); err != nil {
		return nil, err
	}
	if err := clusters.standby.Promote(ctx); err != nil {
		return nil, err
	}
	err = eventually.Within(ctx, eventually.Patience, "the events are published", func() (bool, error) {
		return s.sentOf(ids) >= len(ids), nil
	})
	result.Served = err == nil && s.sentOf(ids) == len(ids)
	return result, nil
}

// Restore is what came of a database that was restored to a point in time.
type Restore struct {
	// Paused: the relay said so, and sent nothing. WouldSend is what it said that it would send; Pending, what was
	// pending at the point.
	Paused             bool
	WouldSend, Pending int
	// Sent is how many of the pending were sent after the resume, and Again how many of them for the second time.
	Sent, Again int
	// Others is how many of those that were published at the point were sent once more.
	Others int
}

// restore restores a backup to a point before the last publishes (R14).
func (p *Proof) restore(ctx context.Context) (_ *Restore, err error) {
	original, err := cluster.New(ctx, cluster.Config{Archive: true})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, original.Close()) }()
	before, err := newSmall(ctx, original)
	if err != nil {
		return nil, err
	}
	defer before.pool.Close()
	h := &history{small: before, on: original}
	if err := h.write(ctx); err != nil {
		return nil, err
	}
	restored, err := h.backup.Restore(ctx, point)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, restored.Close()) }()
	after, err := newSmall(ctx, restored)
	if err != nil {
		return nil, err
	}
	defer after.pool.Close()
	return h.resume(ctx, restored, after)
}

// point is the moment that is restored.
const point = "before_the_mistake"

// history is what happens to the database before it is restored.
type history struct {
	*small
	on             *cluster.Cluster
	backup         *cluster.Backup
	published      []outbox.ID // before the point
	pending        []outbox.ID // at the point, and published after it
	publishedLater []outbox.ID // written after the point
}

// write publishes, makes a backup, leaves something pending at the point, and publishes that later.
func (h *history) write(ctx context.Context) (err error) {
	if err := h.install(ctx); err != nil {
		return err
	}
	if h.published, err = h.publish(ctx, 60); err != nil {
		return err
	}
	if h.backup, err = h.on.Backup(ctx); err != nil {
		return err
	}
	if h.pending, err = h.emit(ctx, 40); err != nil {
		return err
	}
	if err := h.on.Point(ctx, point); err != nil {
		return err
	}
	h.publishedLater, err = h.publish(ctx, 30)
	return err
}

// publish emits events, and has a relay publish all there are.
func (h *history) publish(ctx context.Context, count int) ([]outbox.ID, error) {
	ids, err := h.emit(ctx, count)
	if err != nil {
		return nil, err
	}
	r, err := h.run(ctx, h.on, 0)
	if err != nil {
		return nil, err
	}
	err = eventually.Within(ctx, eventually.Patience, "everything is published", func() (bool, error) {
		open, err := h.on.Text(ctx, "SELECT count(*) FROM outbox_events WHERE state <> 6")
		return open == "0", err
	})
	return ids, errors.Join(err, r.stop())
}

// window is shorter than a restore takes.
const window = 200 * time.Millisecond

// resume starts a relay on the restored database, looks at what it says, and lets it go on.
func (h *history) resume(ctx context.Context, on *cluster.Cluster, after *small) (_ *Restore, err error) {
	result := &Restore{Pending: len(h.pending)}
	r, err := after.run(ctx, on, window)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	if err := eventually.Within(ctx, eventually.Patience, "the relay is paused",
		func() (bool, error) { return r.RestoreHold() != nil, nil }); err != nil {
		return result, nil // the result tells
	}
	result.WouldSend = int(r.RestoreHold().WouldSend())
	if err := wait.For(ctx, time.Second); err != nil {
		return nil, err
	}
	result.Paused = after.sentOf(h.pending)+after.sentOf(h.published) == 0 && after.said("paused")
	outcome, err := operator.New(after.pool, "").Resume(ctx, operator.Action{
		ID: outbox.NewID(), Actor: Name, Reason: "restored on purpose",
	}, operator.RestoredScope)
	if err != nil || outcome != operator.Done {
		return nil, errors.Join(fmt.Errorf("failover: resume: %q", outcome), err)
	}
	// the result tells
	_ = eventually.Within(ctx, eventually.Patience, "what was pending is sent", func() (bool, error) {
		return after.sentOf(h.pending) >= len(h.pending), nil
	})
	result.Sent = after.sentOf(h.pending)
	for _, id := range h.pending {
		result.Again += min(h.sent[id], after.sent[id])
	}
	result.Others = after.sentOf(h.published) + after.sentOf(h.publishedLater)
	return result, nil
}
