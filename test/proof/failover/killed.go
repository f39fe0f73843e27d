package failover

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// Killed is what came of prepared transactions that outlived the crash of a backend.
type Killed struct {
	// Wanted is how many backends were to be killed, and Kills how many were.
	Wanted, Kills int
	// Events were prepared before a crash and committed after it; Overtaken were published after a later one of their
	// aggregate, or never.
	Events, Overtaken int
}

func (k *Killed) ok() bool { return k.Kills >= k.Wanted && k.Events > 0 && k.Overtaken == 0 }

// killed kills a backend while a transaction is prepared. The server recovers within a moment and without a restart,
// and the prepared transaction has another virtual id then. A relay behind a pooler that asks nothing in that moment
// sees no call fail: here the pooler is paused, so that this does not depend on how long the moment is.
func (p *Proof) killed(ctx context.Context) (_ *Killed, err error) {
	on, err := cluster.New(ctx, cluster.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, on.Close()) }()
	pooler, err := server.NewPooler(p.Folder, address(on))
	if err != nil {
		return nil, err
	}
	defer pooler.Close()
	if err := pooler.Start(ctx); err != nil {
		return nil, err
	}
	s, err := newSmall(ctx, on)
	if err != nil {
		return nil, err
	}
	defer s.pool.Close()
	if err := s.install(ctx); err != nil {
		return nil, err
	}
	s.lease = 15 * time.Second // a third of it is what a call may take, and how often it is renewed, which is waited for
	r, err := s.runVia(ctx, through(pooler.Address)+"&default_query_exec_mode=exec", "off", 0)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.stop()) }()
	result := &Killed{Wanted: p.size(4, 2)}
	for range result.Wanted {
		if err := result.round(ctx, on, pooler, s); err != nil {
			return nil, err
		}
	}
	return result, nil
}

// round prepares events, kills, commits, and lets a later event of each aggregate follow.
func (k *Killed) round(ctx context.Context, on *cluster.Cluster, pooler *server.Server, s *small) error {
	const aggregates = 8 // in as many lanes, or nearly
	name := fmt.Sprintf("round%d_", k.Kills)
	first, err := prepare(ctx, on, name, aggregates)
	if err != nil {
		return err
	}
	if err := renewed(ctx, on); err != nil { // the relay has met the open transaction
		return err
	}
	err = pooler.Execute(ctx, "PAUSE")
	if err == nil {
		err = errors.Join(kill(ctx, on), pooler.Execute(ctx, "RESUME"))
	}
	if err != nil {
		return err
	}
	k.Kills++
	s.pool.Reset()                           // its connections are from before
	if err := renewed(ctx, on); err != nil { // the relay has met the server after its recovery
		return err
	}
	if err := on.Exec(ctx, "COMMIT PREPARED '"+name+"'"); err != nil {
		return err
	}
	var second []outbox.ID
	err = outbox.InTx(ctx, s.pool, func(ctx context.Context, tx pgx.Tx) error {
		second, err = emitOf(ctx, tx, name, aggregates)
		return err
	})
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	k.Events += len(first)
	err = eventually.Within(ctx, eventually.Patience, "what came later is published", func() (bool, error) {
		return s.sentOf(second) >= len(second), nil
	})
	if err != nil {
		k.Overtaken += len(first)
		return nil //nolint:nilerr // the result tells
	}
	for i := range first {
		if s.position(first[i]) > s.position(second[i]) {
			k.Overtaken++
		}
	}
	return nil
}

// prepare leaves events in a prepared transaction of this name.
func prepare(ctx context.Context, on *cluster.Cluster, name string, count int) (ids []outbox.ID, err error) {
	conn, err := pgx.Connect(ctx, on.URL())
	if err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	tx, err := conn.Begin(ctx)
	if err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	if ids, err = emitOf(ctx, tx, name, count); err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	if _, err := tx.Exec(ctx, "PREPARE TRANSACTION '"+name+"'"); err != nil {
		return nil, fmt.Errorf("failover: %w", err)
	}
	return ids, nil
}

// kill kills the process of a session that does nothing.
func kill(ctx context.Context, on *cluster.Cluster) error {
	conn, err := pgx.Connect(ctx, on.URL())
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(ctx)) }()
	return on.KillBackend(ctx, int(conn.PgConn().PID()))
}

// renewed returns when the leases have been renewed a few times, between which a relay that has nothing to do looks at
// who writes.
func renewed(ctx context.Context, on *cluster.Cluster) error {
	const times = 2
	for range times {
		const latest = "SELECT coalesce(max(lease_until), '-infinity') FROM outbox_lane_status WHERE owner IS NOT NULL"
		before, err := on.Text(ctx, latest)
		if err != nil {
			return err
		}
		err = eventually.Within(ctx, eventually.Patience, "a lease is renewed", func() (bool, error) {
			now, err := on.Text(ctx, latest)
			return now > before, err
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// place is where in the order of all that was sent an event was first; behind all, if it was not.
func (s *small) position(id outbox.ID) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at := slices.Index(s.list, id); at >= 0 {
		return at
	}
	return len(s.list)
}
