package torture

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture/proxy"
)

// Faults of the database and of the ways to it. They explain nothing by themselves: what came of them shows in the
// relays' steps.
const (
	BackendTerminated check.FaultKind = "backend_terminated" // a session was ended by the server
	QueryCancelled    check.FaultKind = "query_cancelled"    // a statement was
	ConnectionCut     check.FaultKind = "connection_cut"     // a connection broke, after some bytes of one way
	ConnectionStalled check.FaultKind = "connection_stalled" // a connection carried nothing, and stayed open
	TransactionOpen   check.FaultKind = "transaction_open"   // a producer left a transaction open for seconds
)

// Terminations ends sessions of this application_name, one at a time. A role may do that to its own sessions.
func Terminations(application string, every time.Duration, least int) Fault {
	return Fault{
		Kind: BackendTerminated, Every: every, Least: least,
		Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			return on.session(ctx, "pg_terminate_backend", `SELECT pid FROM pg_stat_activity
			WHERE application_name = $1 AND datname = current_database() AND pid <> pg_backend_pid() ORDER BY pid`, application)
		},
	}
}

// Cancellations cancels what such sessions are doing.
func Cancellations(application string, every time.Duration, least int) Fault {
	return Fault{
		Kind: QueryCancelled, Every: every, Least: least, Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			return on.session(ctx, "pg_cancel_backend", `SELECT pid FROM pg_stat_activity
			WHERE application_name = $1 AND datname = current_database() AND state = 'active' AND pid <> pg_backend_pid() 
			ORDER BY pid`, application)
		},
	}
}

// session calls a function of the server for one of the sessions.
func (t *Target) session(ctx context.Context, function, query, application string) (check.Fault, error) {
	rows, err := t.Env.Pool.Query(ctx, query, application)
	if err != nil {
		return check.Fault{}, missed(err)
	}
	pids, err := pgx.CollectRows(rows, pgx.RowTo[int32])
	if err != nil {
		return check.Fault{}, missed(err)
	}
	if len(pids) == 0 {
		return check.Fault{}, ErrMissed
	}
	var done bool
	err = t.Env.Pool.QueryRow(ctx, "SELECT "+function+"($1)", pids[t.Random.IntN(len(pids))]).Scan(&done)
	switch {
	case err != nil:
		return check.Fault{}, missed(err)
	case !done:
		return check.Fault{}, ErrMissed
	default:
		return check.Fault{}, nil
	}
}

// missed has a fault injected later when the database is away because of another.
func missed(err error) error {
	if interrupted(err) {
		return errors.Join(ErrMissed, err)
	}
	return fmt.Errorf("torture: %w", err)
}

// patienceWithCuts is how long a cut waits for bytes to be cut.
const patienceWithCuts = 2 * time.Second

// Cuts cuts connections through this proxy, in one direction or both, at once or after some bytes; and where commits
// go through it, before their answers.
func Cuts(p *proxy.Proxy, whose string, every time.Duration, least int) Fault {
	return Fault{
		Kind: ConnectionCut, Every: every, Least: least, Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			cut := proxy.Cut{Way: proxy.Way(on.Random.IntN(3))}
			if on.Random.IntN(2) == 0 {
				cut.After = on.Random.IntN(4000)
			}
			detail := fmt.Sprintf("%s, %s after %d bytes", whose, cut.Way, cut.After)
			if on.Random.IntN(3) == 0 {
				cut = proxy.Cut{Way: proxy.ToClient, Behind: "commit\x00"}
				detail = whose + ", before the answer to a commit"
			}
			waiting, cancel := context.WithTimeout(ctx, patienceWithCuts)
			defer cancel()
			if !p.Cut(waiting, on.Random, cut) {
				return check.Fault{}, ErrMissed
			}
			return check.Fault{Detail: detail, From: now()}, nil
		},
	}
}

// Stalls lets a connection through this proxy carry nothing for about so long, and hangs up then.
func Stalls(p *proxy.Proxy, whose string, length, every time.Duration, least int) Fault {
	return Fault{
		Kind: ConnectionStalled, Every: every, Least: least,
		Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			fault := check.Fault{Detail: whose, From: now()}
			standing, cancel := context.WithTimeout(ctx, length/2+time.Duration(on.Random.Int64N(int64(length))))
			defer cancel()
			if !p.Stall(standing, on.Random) {
				return check.Fault{}, ErrMissed
			}
			return fault, nil
		},
	}
}

// OpenTransactions leaves transactions open for seconds that have written their events already: the numbers of all
// others pass them by.
func OpenTransactions(length, every time.Duration, least int) Fault {
	return Fault{
		Kind: TransactionOpen, Every: every, Least: least,
		Inject: func(ctx context.Context, on *Target) (check.Fault, error) {
			d := draw(on.Random, on.Plan.Aggregates)
			d.loose, d.things = true, []string{"left-open"} // nobody shall have to wait for its lock
			d.hold = length/2 + time.Duration(on.Random.Int64N(int64(length)))
			// To its end also when the schedule is over.
			return check.Fault{}, on.producers.transact(context.WithoutCancel(ctx), on.Random, d)
		},
	}
}
