package failover

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/proof/mutants"
)

// crashes kills the server again and again under producers that do not wait for the disk. They lose commits; none of
// those may have been published.
func (p *Proof) crashes(ctx context.Context) (*torture.Report, error) {
	plan, err := p.plan("crashes", "", p.size(4000, 1600), time.Duration(p.size(20, 7))*time.Second)
	if err != nil {
		return nil, err
	}
	return p.crash(ctx, plan, p.size(5, 3), (*torture.Target).Vanished)
}

// control does the same to relays that have no barrier: they must be found out.
func (p *Proof) control(ctx context.Context) (*torture.Report, error) {
	plan, err := p.plan("control", "", p.size(2400, 1600), time.Duration(p.size(12, 7))*time.Second)
	if err != nil {
		return nil, err
	}
	plan.Executable = filepath.Join(p.Folder, "mutants")
	if err := mutants.Build(ctx, plan.Executable, "./test/cmd/proof-failover"); err != nil {
		return nil, err
	}
	plan.Environment = []string{mutants.Chosen("no-barrier")}
	return p.crash(ctx, plan, p.size(3, 3), (*torture.Target).Phantoms)
}

// crash plays a plan on a server that forgets as much as it can, and crashes at least so often, and until some of what
// is wanted was found.
func (p *Proof) crash(
	ctx context.Context, plan torture.Plan, least int, wanted func(*torture.Target, context.Context) (int, error),
) (_ *torture.Report, err error) {
	server, err := cluster.New(ctx, cluster.Config{Settings: map[string]string{
		// A commit that does wait for the disk comes late to it: what others have not written stays unwritten for long.
		"commit_delay": "100000", "commit_siblings": "0",
	}})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	if err := stopWriter(ctx, server); err != nil {
		return nil, err
	}
	plan.Postgres, plan.ProducersVia = server.URL(), server.URL()+"&synchronous_commit=off"
	plan.Forgetful, plan.Doomed = true, none
	found := 0
	inject := func(ctx context.Context, on *torture.Target) (check.Fault, error) {
		ctx = context.WithoutCancel(ctx)
		if err := errors.Join(caughtUp(ctx, server, on), badMoment(ctx, on), muchToLose(ctx, on)); err != nil {
			return check.Fault{}, err
		}
		fault := check.Fault{From: time.Now().UnixMicro()}
		err := server.Kill(ctx)
		if err == nil {
			err = server.Start(ctx)
		}
		if err == nil {
			err = stopWriter(ctx, server)
		}
		fault.To = time.Now().UnixMicro()
		if err == nil {
			on.Env.Pool.Reset() // its connections are from before
			found, err = wanted(on, ctx)
		}
		return fault, err
	}
	plan.Schedule = []torture.Fault{{
		Kind: check.DatabaseDown, Every: 800 * time.Millisecond, Least: least, Inject: inject, Enough: func() bool {
			return found > 0
		},
	}}
	return torture.Run(ctx, plan, p)
}

// caughtUp waits until the relays publish what has just been committed: what has waited for long is durable anyway.
func caughtUp(ctx context.Context, server *cluster.Cluster, on *torture.Target) error {
	return eventually.Within(ctx, eventually.Patience, "the relays have caught up", func() (bool, error) {
		// As a transaction that writes nothing: its commit would make everything durable.
		open, err := number(ctx, server, on.Env.SQL("SELECT count(*) FROM {schema}.outbox_events WHERE state = 0"))
		return open <= most, err
	})
}

// badMoment waits until something has been published since the log was last written out, for a while.
func badMoment(ctx context.Context, on *torture.Target) error {
	var before uint64
	var at string
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
		var flushed string
		if err := on.Env.Pool.QueryRow(ctx, "SELECT pg_current_wal_flush_lsn()::text").Scan(&flushed); err != nil {
			return fmt.Errorf("failover: %w", err)
		}
		arrived, err := on.Env.Arrivals(ctx)
		if err != nil {
			return fmt.Errorf("failover: %w", err)
		}
		if flushed == at && arrived > before {
			return nil
		}
		if flushed != at {
			at, before = flushed, arrived
		}
	}
	return nil
}

// muchToLose waits until the log is some commits ahead of the disk, for a while.
func muchToLose(ctx context.Context, on *torture.Target) error {
	const commits = 12 << 10 // bytes: a commit and what it changed are one or two thousand
	for until := time.Now().Add(2 * time.Second); time.Now().Before(until); {
		var ahead int64
		if err := on.Env.Pool.QueryRow(ctx,
			"SELECT (pg_current_wal_insert_lsn() - pg_current_wal_flush_lsn())::bigint").Scan(&ahead); err != nil {
			return fmt.Errorf("failover: %w", err)
		}
		if ahead > commits {
			return nil
		}
	}
	return nil
}

// most is how many events may be open when the relays have caught up.
const most = 100

// stopWriter keeps the process from working that writes the log out for those who do not wait: only then much of it
// is lost in a crash. It must be asleep, or it would keep a lock that everybody needs.
func stopWriter(ctx context.Context, server *cluster.Cluster) error {
	const query = "SELECT coalesce((SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'"
	return eventually.Within(ctx, eventually.Patience, "the log's writer is asleep", func() (bool, error) {
		pid, err := number(ctx, server, query+"), 0)")
		if err != nil || pid == 0 {
			return false, err
		}
		if err := syscall.Kill(pid, syscall.SIGSTOP); err != nil {
			return false, fmt.Errorf("failover: stop the log's writer: %w", err)
		}
		asleep, err := number(ctx, server, query+" AND wait_event = 'WalWriterMain'), 0)")
		if err == nil && asleep == pid {
			return true, nil
		}
		return false, errors.Join(err, syscall.Kill(pid, syscall.SIGCONT))
	})
}
