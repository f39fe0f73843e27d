package failover

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Waits is what came of commits that wait for a standby that is not there.
type Waits struct {
	Report *torture.Report
	// Seen are events that became visible because their wait was cancelled, and Early those of them that were
	// published before the standby was given up.
	Seen, Early int
	// Cancelled is how many waits were; Rejected, how many answers of those the relays did not take.
	Cancelled, Rejected int
	// Hung is how many sessions waited at the end, and Arrived what was published all the same in a second before it.
	Hung, Arrived int
}

// ghost is a standby that never comes.
const ghost = "ghost"

// cancelling is for how long waits are cancelled, at least.
const cancelling = time.Second

// waits lets all commits wait for a standby that is not there. First every wait is cancelled: the server then
// answers success and warns, and the relays must take that for none (C5). Then nothing helps any more, until
// the setting is undone (C4).
func (p *Proof) waits(ctx context.Context) (_ *Waits, err error) {
	server, err := cluster.New(ctx, cluster.Config{})
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, server.Close()) }()
	plan, err := p.plan("waits", server.URL(), p.size(3000, 2000), time.Duration(p.size(6, 4))*time.Second)
	if err != nil {
		return nil, err
	}
	w := &Waits{}
	plan.Schedule = []torture.Fault{
		torture.Once(check.DatabaseDown, time.Second, func(ctx context.Context, on *torture.Target) (check.Fault, error) {
			ctx = context.WithoutCancel(ctx)
			fault := check.Fault{From: time.Now().UnixMicro()}
			if err := server.Set(ctx, "synchronous_standby_names", ghost); err != nil {
				return fault, err
			}
			err := errors.Join(w.cancel(ctx, server, on), w.hang(ctx, server, on),
				server.Set(ctx, "synchronous_standby_names", ""))
			fault.To = time.Now().UnixMicro()
			return fault, err
		}),
	}
	if w.Report, err = torture.Run(ctx, plan, p); err != nil {
		return nil, err
	}
	w.Rejected, err = said(plan.Folder, unconfirmed)
	return w, err
}

// unconfirmed is what a relay says of an answer that it does not take.
const unconfirmed = "did not confirm the commit"

// waiting are the sessions whose commit waits for a standby.
const waiting = "FROM pg_stat_activity WHERE wait_event = 'SyncRep'"

// cancel ends every wait for a while, until enough has come of it.
func (w *Waits) cancel(ctx context.Context, server *cluster.Cluster, on *torture.Target) error {
	err := eventually.Within(ctx, eventually.Patience, "a commit waits", func() (bool, error) {
		n, err := server.Text(ctx, "SELECT count(*) "+waiting)
		return err == nil && n != "0", err
	})
	if err != nil {
		return err
	}
	// What begins from now on can be published only after the ghost is given up.
	since, err := server.Text(ctx, "clock_timestamp()")
	if err != nil {
		return err
	}
	for began := time.Now(); time.Since(began) < cancelling || w.Seen < enoughSeen || w.Rejected == 0; {
		n, err := number(ctx, server, "SELECT count(*) FROM (SELECT pg_cancel_backend(pid) "+waiting+") c")
		if err != nil {
			return err
		}
		w.Cancelled += n
		if w.Seen, err = number(ctx, server,
			on.Env.SQL("SELECT count(*) FROM {schema}.outbox_events WHERE created_at > $1::text::timestamptz"),
			since); err != nil {
			return err
		}
		if w.Rejected, err = said(on.Plan.Folder, unconfirmed); err != nil {
			return err
		}
		if time.Since(began) > eventually.Patience {
			break // the result tells
		}
	}
	w.Early, err = number(ctx, server,
		on.Env.SQL("SELECT count(*) FROM {schema}.outbox_events WHERE created_at > $1::text::timestamptz AND state = 6"),
		since)
	return err
}

// hang lets everything wait until no relay can have a lease any more, and then looks for a second.
func (w *Waits) hang(ctx context.Context, server *cluster.Cluster, on *torture.Target) error {
	if err := wait.For(ctx, on.Plan.Lease); err != nil {
		return err
	}
	before, err := on.Env.Arrivals(ctx)
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	if err := wait.For(ctx, time.Second); err != nil {
		return err
	}
	after, err := on.Env.Arrivals(ctx)
	if err != nil {
		return fmt.Errorf("failover: %w", err)
	}
	w.Arrived = int(after - before)
	// those that gave up come again; the result tells
	_ = eventually.Within(ctx, time.Minute, "a session waits", func() (bool, error) {
		w.Hung, err = number(ctx, server, "SELECT count(*) "+waiting)
		return err != nil || w.Hung > 0, err
	})
	return err
}

// said counts how often the relays of a run said these words.
func said(folder, words string) (count int, err error) {
	files, err := filepath.Glob(filepath.Join(folder, "relay-*.log"))
	if err != nil {
		return 0, fmt.Errorf("failover: %w", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			return 0, fmt.Errorf("failover: %w", err)
		}
		count += bytes.Count(text, []byte(words))
	}
	return count, nil
}

func number(ctx context.Context, server *cluster.Cluster, query string, args ...any) (int, error) {
	text, err := server.Text(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, fmt.Errorf("failover: %w", err)
	}
	return n, nil
}
