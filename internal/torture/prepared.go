package torture

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/wait"
)

// PreparedOpen is a transaction with events that was prepared and left so for seconds. It is no session's any more, and
// outlives restarts and crashes of the server.
const PreparedOpen check.FaultKind = "prepared_open"

// preparedThings is how many aggregates such transactions write, all of them each time. Nobody else does: they are
// locked for as long as the transaction is open.
const preparedThings = 5

// PreparedTransactions has producers prepare transactions, leave them open for about so long, and for longer where the
// server goes away meanwhile, and commit them or roll them back then. Some producers die first: the next one, and the
// end of the schedule, finds what they left by its name. One must outlive a server, or it is injected again.
func PreparedTransactions(length, every time.Duration, least int) Fault {
	survived := false
	inject := func(ctx context.Context, on *Target) (check.Fault, error) {
		p := on.producers
		whole := context.WithoutCancel(ctx) // what is begun is finished, also when the schedule is over
		if err := p.resolveLeft(whole, on.Random); err != nil {
			return check.Fault{}, missed(err)
		}
		before, err := on.Env.server(whole)
		if err != nil {
			return check.Fault{}, missed(err)
		}
		t, err := p.prepare(whole, on.Random)
		if err != nil {
			return check.Fault{}, missed(err)
		}
		fault := check.Fault{From: now()}
		open := length/2 + time.Duration(on.Random.Int64N(int64(length)))
		if on.Env.outlives(ctx, before, open, on.Plan.Lease) {
			survived = true
			p.survived.Add(1)
			fault.Detail = "outlived the server, "
		}
		fault.To = now()
		verb := []string{commit, commit, commit, rollBack, leave}[on.Random.IntN(5)]
		fault.Detail += verb
		if verb == leave {
			return fault, nil
		}
		if err := p.end(whole, t, verb); err != nil {
			return fault, err
		}
		// Right behind it, so that an event that was overlooked is overtaken.
		return fault, p.transact(whole, on.Random, transactionPlan{things: t.things})
	}
	enough := func() bool { return survived }
	return Fault{Kind: PreparedOpen, Every: every, Least: least, Enough: enough, Inject: inject}
}

// What becomes of a prepared transaction.
const (
	commit   = "COMMIT PREPARED"
	rollBack = "ROLLBACK PREPARED"
	leave    = "left by its producer"
)

// server names the instance of the server: it is another after a restart, and also after a crash of one of its
// processes, from which it recovers without one.
func (e *Env) server(ctx context.Context) (instance string, err error) {
	const query = "SELECT pg_postmaster_start_time()::text || ' ' || pg_stat_get_bgwriter_stat_reset_time()::text"
	if err := e.Pool.QueryRow(ctx, query).Scan(&instance); err != nil {
		return "", fmt.Errorf("torture: which server this is: %w", err)
	}
	return instance, nil
}

// outlives waits for so long, and tells whether there is another instance of the server meanwhile. If so it waits a
// while longer, in which the relays get to know that one. Whether it is another is not known while it does not answer,
// so it goes on until it does, on a slow machine long after the time. It ends early with the schedule.
func (e *Env) outlives(ctx context.Context, before string, length, after time.Duration) bool {
	until, other, answers := time.Now().Add(length), false, true
	for last := until.Add(steadyTime); time.Now().Before(until) || !answers && !other && time.Now().Before(last); {
		if wait.For(ctx, 100*time.Millisecond) != nil {
			break
		}
		instance, err := e.server(ctx)
		if answers = err == nil; answers && instance != before {
			before, other, until = instance, true, time.Now().Add(after)
		}
	}
	return other
}

// preparedTx is a transaction that waits for its end.
type preparedTx struct {
	key    string
	things []string
	events int
}

// gid is the name that the server knows a prepared transaction by.
func (p *producers) gid(key string) string { return p.env.Run + "/" + key }

// prepare writes events and prepares their transaction. After an error nobody knows whether it is prepared.
func (p *producers) prepare(ctx context.Context, random *rand.Rand) (t preparedTx, err error) {
	ctx, cancel := context.WithTimeout(ctx, transactionTime)
	defer cancel()
	t.key = fmt.Sprintf("prepared-%d", p.keys.Add(1))
	for n := range preparedThings {
		t.things = append(t.things, preparedThing(n))
	}
	conn, err := p.pool.Acquire(ctx)
	if err != nil {
		return t, fmt.Errorf("torture: %w", err)
	}
	defer conn.Release() // one with an open transaction is closed
	tx, err := conn.Begin(ctx)
	if err != nil {
		return t, fmt.Errorf("torture: %w", err)
	}
	events, err := p.fill(ctx, tx, random, transactionPlan{things: t.things})
	if err != nil {
		return t, err
	}
	t.events = len(events)
	if _, err := tx.Exec(ctx, p.env.SQL("INSERT INTO {schema}.torture_done (key) VALUES ($1)"), t.key); err != nil {
		return t, fmt.Errorf("torture: the business row: %w", err)
	}
	if err := p.history.Add(check.Record{Tx: &check.Tx{Key: t.key, Events: events}}); err != nil {
		return t, err
	}
	if _, err := tx.Exec(ctx, "PREPARE TRANSACTION '"+p.gid(t.key)+"'"); err != nil {
		return t, fmt.Errorf("torture: %w", err)
	}
	return t, nil
}

func preparedThing(n int) string { return fmt.Sprintf("prepared-%d", n) }

// end ends a prepared transaction, and writes down what became of it if that is certain. Otherwise its business row
// tells.
func (p *producers) end(ctx context.Context, t preparedTx, verb string) error {
	done, err := p.resolve(ctx, p.gid(t.key), verb)
	if err != nil || !done {
		return err
	}
	outcome := check.Failed
	if verb == commit {
		outcome = check.OK
		p.claimed.Add(int64(t.events))
		p.committed.Add(int64(t.events))
		p.bell.Ring()
	}
	return p.history.Add(check.Record{Tx: &check.Tx{Key: t.key, Outcome: outcome}})
}

// resolve ends a prepared transaction, however often the server goes away meanwhile. False: there is none of that name;
// it may have been ended by a call whose answer was lost.
func (p *producers) resolve(ctx context.Context, gid, verb string) (done bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, steadyTime)
	defer cancel()
	for {
		once, cancel := context.WithTimeout(ctx, transactionTime)
		_, err = p.pool.Exec(once, verb+" '"+gid+"'")
		cancel()
		var of *pgconn.PgError
		switch {
		case err == nil:
			return true, nil
		case errors.As(err, &of) && of.Code == "42704": // no such transaction
			return false, nil
		case errors.As(err, &of) && of.Code == "55000": // another session is about to
		case !interrupted(err):
			return false, fmt.Errorf("torture: %s: %w", verb, err)
		}
		if wait.For(ctx, 50*time.Millisecond) != nil {
			return false, fmt.Errorf("torture: %s: %w", verb, err)
		}
	}
}

// resolveLeft ends the prepared transactions whose producers did not. Their business rows tell how.
func (p *producers) resolveLeft(ctx context.Context, random *rand.Rand) error {
	rows, err := p.env.Pool.Query(ctx, `SELECT gid FROM pg_prepared_xacts
		WHERE starts_with(gid, $1) AND database = current_database() ORDER BY gid`, p.gid(""))
	if err != nil {
		return fmt.Errorf("torture: prepared transactions: %w", err)
	}
	left, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("torture: prepared transactions: %w", err)
	}
	for _, gid := range left {
		if _, err := p.resolve(ctx, gid, []string{commit, rollBack}[random.IntN(2)]); err != nil {
			return err
		}
	}
	if len(left) > 0 {
		p.bell.Ring()
	}
	return nil
}

// endPrepared ends what is left when the schedule is over.
func (p *producers) endPrepared(ctx context.Context) error {
	if !p.plan.prepares() {
		return nil
	}
	random := rand.New(rand.NewPCG(p.plan.Seed, 1<<33))
	for {
		err := p.resolveLeft(ctx, random)
		if err == nil || !interrupted(err) || wait.For(ctx, 100*time.Millisecond) != nil {
			return err
		}
	}
}

// prepares tells whether transactions are prepared in the plan.
func (p Plan) prepares() bool {
	return slices.ContainsFunc(p.Schedule, func(f Fault) bool { return f.Kind == PreparedOpen })
}
