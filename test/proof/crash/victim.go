package crash

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
)

// relayDies brings a relay to the point, with most of the events before it and the rest behind it.
func (t *trial) relayDies(ctx context.Context) error {
	if err := t.produce(ctx, t.plan.Events/2); err != nil {
		return err
	}
	if err := t.prepare(ctx); err != nil || len(t.outcome.Problems) > 0 {
		return err
	}
	produced := make(chan error, 1)
	go func() { produced <- t.produce(ctx, t.plan.Events/2+eventsOfATransaction) }()
	return errors.Join(t.sacrifice(ctx, t.env.Run, task{Role: relays, Old: t.setting.old}), <-produced)
}

// prepare makes so what must be so before the victim comes.
func (t *trial) prepare(ctx context.Context) error {
	var statement string
	switch {
	case t.setting.parked:
		return t.parkFirst(ctx)
	case t.setting.requested:
		return t.publishFirst(ctx)
	case t.setting.orphaned:
		return t.orphan(ctx)
	case t.setting.isolating:
		statement = "UPDATE {schema}.outbox_lanes SET crash_count = 3"
	case t.setting.suspect:
		statement = `WITH poison AS (
				SELECT e.id, e.lane FROM {schema}.outbox_events e WHERE e.payload_json #>> '{data,fate}' = 'poison'
			), marked AS (
				INSERT INTO {schema}.outbox_markers (layout, lane, event_id, token, deaths)
				SELECT 1, lane, id, gen_random_uuid(), 3 FROM poison
			) UPDATE {schema}.outbox_lanes l SET crash_count = 3 FROM poison p WHERE l.lane = p.lane`
	default:
		return nil
	}
	if _, err := t.env.Pool.Exec(ctx, t.env.SQL(statement)); err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	return nil
}

// orphan leaves all lanes to a relay whose lease has ended, and which nobody has ended yet.
func (t *trial) orphan(ctx context.Context) error {
	id := outbox.NewID().String()
	for _, step := range []struct {
		statement string
		args      []any
	}{{leases.Join, []any{id, "gone", "0"}}, {leases.Hold, []any{id}}} {
		if _, err := t.env.Pool.Exec(ctx, t.env.SQL(step.statement), step.args...); err != nil {
			return fmt.Errorf("crash: %w", err)
		}
	}
	return nil
}

// parkFirst lets a relay that does not know all types work until only those are left, and leave.
func (t *trial) parkFirst(ctx context.Context) error {
	old, err := t.start(task{Role: relays, Old: true}, "")
	if err != nil {
		return err
	}
	err = t.await(ctx, t.plan.Patience, old, "SELECT count(*) FILTER (WHERE kind = 2) > 0 AND "+
		"count(*) FILTER (WHERE kind = 1) = 0 FROM {schema}.outbox_held HAVING NOT EXISTS "+
		"(SELECT FROM {schema}.outbox_events WHERE state = 0)")
	if err != nil {
		return err
	}
	return old.leave(ctx)
}

// publishFirst lets a relay publish what there is and leave, and has an operator ask for all of it again.
func (t *trial) publishFirst(ctx context.Context) error {
	first, err := t.start(task{Role: relays}, "")
	if err != nil {
		return err
	}
	if _, err := t.drain(ctx, first); err != nil {
		return err
	}
	if err := first.leave(ctx); err != nil {
		return err
	}
	rows, err := t.env.Pool.Query(ctx, t.env.SQL("SELECT id FROM {schema}.outbox_events WHERE state = 6 ORDER BY seq"))
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	events, err := pgx.CollectRows(rows, pgx.RowTo[outbox.ID])
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	if len(events) < t.setting.passage {
		t.problemf("%s published %d events, too few for the trial to begin: %s", first.task.Name, len(events),
			first.LastWords())
		return nil
	}
	action := operator.Action{ID: outbox.NewID(), Actor: actor, Reason: "once more"}
	_, err = operator.New(t.env.Pool, t.env.Run).Redeliver(ctx, action, operator.Redelivery{}, events...)
	return err
}

// producerDies lets a relay run, and producers one after the other.
func (t *trial) producerDies(ctx context.Context) (successor *child, err error) {
	if successor, err = t.start(task{Role: relays}, ""); err != nil {
		return nil, err
	}
	if err := t.sacrifice(ctx, t.env.Run, task{Role: produces, Events: t.plan.Events}); err != nil {
		return nil, err
	}
	last := fmt.Sprintf("%s-%d", t.children[len(t.children)-1].task.Name, t.setting.passage)
	committed, err := t.env.Committed(ctx, last)
	if err != nil {
		return nil, err
	}
	if committed != t.setting.committed {
		t.problemf("transaction %s, in which the producer died: committed is %t", last, committed)
	}
	second, err := t.start(task{Role: produces, Events: t.plan.Events}, "")
	if err != nil {
		return nil, err
	}
	return successor, t.finish(ctx, second)
}

// operatorDies lets an operator redrive the dead, and another send the same action again.
func (t *trial) operatorDies(ctx context.Context) (successor *child, err error) {
	if err := t.produce(ctx, t.plan.Events); err != nil {
		return nil, err
	}
	if successor, err = t.start(task{Role: relays}, ""); err != nil {
		return nil, err
	}
	err = t.await(ctx, t.plan.Patience, successor, "SELECT count(*) > 1 FROM {schema}.outbox_dlq HAVING NOT EXISTS "+
		"(SELECT FROM {schema}.outbox_events WHERE state = 0) AND NOT EXISTS "+
		"(SELECT FROM {schema}.outbox_held WHERE kind IN (1, 2))")
	if err != nil {
		return nil, err
	}
	dead, err := t.letters(ctx)
	if err != nil {
		return nil, err
	}
	action := task{Role: operates, Action: outbox.NewID(), Expect: operator.Done}
	for _, l := range dead {
		action.Dead = append(action.Dead, l.Event)
		if err := t.cure(l.Event); err != nil {
			return nil, err
		}
	}
	if err := t.sacrifice(ctx, t.env.Run, action); err != nil {
		return nil, err
	}
	if t.setting.committed {
		action.Expect = operator.DoneBefore
	}
	second, err := t.start(action, "")
	if err != nil {
		return nil, err
	}
	return successor, t.finish(ctx, second)
}

// finish waits until a process has done what it was for.
func (t *trial) finish(ctx context.Context, p *child) error {
	switch {
	case !p.Await(ctx, t.plan.Patience):
		t.problemf("%s does not come to an end", p.task.Name)
	case p.Err() != nil:
		t.problemf("%s failed: %v: %s", p.task.Name, p.Err(), p.LastWords())
	}
	return ctx.Err()
}

// sacrifice brings a process to the point and waits for its death.
func (t *trial) sacrifice(ctx context.Context, run string, l task) error {
	l.Run = run
	die := t.dieByItself
	if t.point.OnServer {
		die = t.dieOnTheServer
	}
	victim, err := die(ctx, l)
	if err != nil {
		return err
	}
	kind := check.Failpoint
	if !t.outcome.Hit {
		kind = check.Kill
		t.problemf("%s did not come to the point: %v: %s", victim.task.Name, victim.Err(), victim.LastWords())
	}
	victim.Kill()
	t.outcome.Kills++
	return t.died(ctx, victim, kind)
}

// died ends the lease of a relay that is dead, and writes down the death: others take over what it held when its time
// has passed, and to wait for that would show no more.
func (t *trial) died(ctx context.Context, p *child, kind check.FaultKind) error {
	deaths := []check.Fault{{Kind: kind, Point: t.point.Name}}
	if p.task.Role == relays {
		if _, err := t.env.Pool.Exec(ctx, t.env.SQL(leases.Expire), p.task.Name); err != nil {
			return fmt.Errorf("crash: end the lease of a dead relay: %w", err)
		}
		deaths = append(deaths, check.Fault{Kind: check.LeaseLost})
	}
	// Only now, for a beat that the relay sent before its death may have come after it.
	now := time.Now().UnixMicro()
	for _, death := range deaths {
		death.Relay, death.From, death.To = p.task.Name, now, now
		if err := t.faults.Add(check.Record{Fault: &death}); err != nil {
			return err
		}
	}
	return nil
}

// dieByItself lets the victim end itself.
func (t *trial) dieByItself(ctx context.Context, l task) (*child, error) {
	victim, err := t.start(l, t.point.Name+":"+strconv.Itoa(t.setting.passage))
	if err != nil {
		return nil, err
	}
	if t.setting.stop {
		if err := t.stopInTheMiddle(ctx, victim); err != nil {
			return nil, err
		}
	}
	victim.Await(ctx, t.plan.Patience)
	_, missing := os.Stat(t.hitFile())
	t.outcome.Hit = missing == nil && victim.KilledBy(syscall.SIGKILL)
	return victim, ctx.Err()
}

// dieOnTheServer kills the victim while its statement stands still.
func (t *trial) dieOnTheServer(ctx context.Context, l task) (victim *child, err error) {
	hidden, err := newTrap(ctx, t.env.Pool, l.Run, t.hook)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, hidden.open()) }()
	if victim, err = t.start(l, ""); err != nil {
		return nil, err
	}
	t.outcome.Hit, err = hidden.kill(ctx, victim, t.plan.Patience)
	return victim, err
}

// stopInTheMiddle asks a relay to stop when it has published some of the events.
func (t *trial) stopInTheMiddle(ctx context.Context, victim *child) error {
	if err := t.arrivals(ctx, victim, uint64(t.plan.Events/8)); err != nil {
		return err
	}
	return victim.Signal(syscall.SIGTERM)
}
