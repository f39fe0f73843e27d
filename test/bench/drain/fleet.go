package drain

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// A Fleet is a number of relay processes that drain one backlog together.
type Fleet struct {
	Env      *Env
	Template Template
	Relays   int
	Delay    time.Duration
	Lease    time.Duration
	// Rate is how many events per second they are given; 0: all at once.
	Rate int
	// Kill ends one of them with SIGKILL when a third of the events have arrived.
	Kill bool
	// Folder is for journals.
	Folder string
}

// A FleetTurn is what one drain by a fleet measured.
type FleetTurn struct {
	Turn
	Verdict Verdict
	// Charged is how many events ended with a failed attempt, of which the broker made none.
	Charged int
	// Shares are the events that each relay published.
	Shares []int
	// Until80 is when four fifths of the events had arrived; a few hot aggregates make the rest.
	Until80 time.Duration
	// Balanced is how long it took from the start until every relay had its share of the lanes.
	Balanced time.Duration
	// Unowned is the longest time that a lane had no owner; Takeover the time from the kill until the last
	// lane of the killed relay was somebody else's.
	Unowned, Takeover time.Duration
}

const lanes = 64

// warmUp is how many of the events come first and are not measured: connections are opened and statements
// planned by the first ones, in every process.
func (f Fleet) warmUp() int { return f.Template.Events / warmUpShare }

const warmUpShare = 8

// room is what a journal can take: in the worst case one relay publishes everything twice.
func (f Fleet) room() int { return 2*f.Template.Events + 1000 }

// member is a running process of the fleet.
type member struct {
	name    string
	command *exec.Cmd
	journal *Journal
}

// Measure lets the relays start, share the lanes and warm up, gives them the backlog in one transaction, and
// waits until it is settled. What is measured begins with the backlog.
func (f Fleet) Measure(ctx context.Context) (turn FleetTurn, err error) {
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	if err := f.Env.Empty(ctx); err != nil {
		return turn, err
	}
	watch, err := WatchLanes(ctx, f.Env)
	if err != nil {
		return turn, err
	}
	members, err := f.start(ctx)
	defer func() { err = errors.Join(err, f.end(members)) }()
	if err == nil {
		err = f.drain(ctx, members, &turn)
	}
	var watchErr error
	turn.Unowned, watchErr = watch.Stop(ctx)
	if err := errors.Join(err, watchErr); err != nil {
		return turn, err
	}
	for _, m := range members {
		_ = m.command.Process.Signal(syscall.SIGTERM) // the killed one is gone already
	}
	for i, m := range members {
		if err := m.command.Wait(); err != nil && (!f.Kill || i != 0) {
			return turn, fmt.Errorf("drain: %s: %w", m.name, err)
		}
	}
	return turn, f.assess(ctx, members, &turn)
}

func (f Fleet) start(ctx context.Context) (members []*member, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("drain: %w", err)
	}
	url, err := f.Env.URL()
	if err != nil {
		return nil, err
	}
	for i := range f.Relays {
		m := Member{
			URL: url, Name: "relay-" + strconv.Itoa(i), Journal: filepath.Join(f.Folder, "journal-"+strconv.Itoa(i)),
			Room: f.room(), Delay: f.Delay, Lease: f.Lease,
		}
		if err := os.RemoveAll(m.Journal); err != nil {
			return members, fmt.Errorf("drain: journal: %w", err)
		}
		journal, err := OpenJournal(m.Journal, m.Room)
		if err != nil {
			return members, err
		}
		// Not the context's kill: a relay that is killed leaves its lanes taken.
		command := exec.CommandContext(context.WithoutCancel(ctx), self, append([]string{"relay"}, m.args()...)...)
		command.Stderr = os.Stderr
		command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
		if err := command.Start(); err != nil {
			return members, errors.Join(fmt.Errorf("drain: start a relay: %w", err), journal.Close())
		}
		members = append(members, &member{name: m.Name, command: command, journal: journal})
	}
	return members, nil
}

// end leaves no process behind, whatever happened.
func (f Fleet) end(members []*member) error {
	var problems []error
	for _, m := range members {
		if m.command.ProcessState == nil {
			_ = m.command.Process.Kill() // it may have ended since
			_ = m.command.Wait()
		}
		problems = append(problems, m.journal.Close())
	}
	return errors.Join(problems...)
}

func (f Fleet) drain(ctx context.Context, members []*member, turn *FleetTurn) error {
	began := time.Now()
	if err := f.poll(ctx, "share the lanes", 20*time.Millisecond, f.balanced); err != nil {
		return err
	}
	turn.Balanced = time.Since(began)
	if err := f.release(ctx, 0, f.warmUp(), func() error { return nil }); err != nil {
		return err
	}
	if err := f.poll(ctx, "settle the warm-up", 10*time.Millisecond, f.settled); err != nil {
		return err
	}
	var clientsBefore, serversBefore time.Duration
	err := f.offer(ctx, func() (err error) {
		clientsBefore, serversBefore, err = f.meters(ctx, members, turn)
		return err
	})
	if err != nil {
		return err
	}
	if f.Kill {
		if err := f.kill(ctx, members, turn); err != nil {
			return err
		}
		members = members[1:]
	}
	arrived := func(context.Context) (bool, error) { return total(members) >= f.Template.Events, nil }
	if f.Kill { // the dead one's arrivals are not counted again
		arrived = func(context.Context) (bool, error) { return true, nil }
	}
	if err := f.poll(ctx, "publish everything", 2*time.Millisecond, arrived); err != nil {
		return err
	}
	if err := f.poll(ctx, "settle everything", 10*time.Millisecond, f.settled); err != nil {
		return err
	}
	clients, servers, err := f.meters(ctx, members, turn)
	turn.ClientCPU, turn.ServerCPU = clients-clientsBefore, servers-serversBefore
	return err
}

// offerEvery is how often a part of the events is committed, where they come at a rate.
const offerEvery = 20 * time.Millisecond

// offer gives the relays what is measured, all at once or part by part at fixed times.
func (f Fleet) offer(ctx context.Context, before func() error) error {
	from, left := f.warmUp(), f.Template.Events-f.warmUp()
	if f.Rate == 0 {
		return f.release(ctx, from, left, before)
	}
	if err := before(); err != nil {
		return err
	}
	part := max(int(float64(f.Rate)*offerEvery.Seconds()), 1)
	ticker := time.NewTicker(offerEvery)
	defer ticker.Stop()
	for began := time.Now(); left > 0; {
		for due := int(time.Since(began)/offerEvery+1) * part; left > 0 && from-f.warmUp() < due; {
			events := min(part, left)
			if err := f.release(ctx, from, events, func() error { return nil }); err != nil {
				return err
			}
			from, left = from+events, left-events
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("drain: offer events: %w", context.Cause(ctx))
		}
	}
	return nil
}

// release commits events in one transaction and wakes the relays. What it takes to insert them is not the
// relays', so the meters are read just before the commit.
func (f Fleet) release(ctx context.Context, from, events int, beforeCommit func() error) error {
	if err := f.Env.DB.Exec(ctx, "BEGIN"); err != nil {
		return err
	}
	if err := f.Env.Fill(ctx, f.Template, OutboxTable, from, events); err != nil {
		return err
	}
	if err := beforeCommit(); err != nil {
		return err
	}
	return f.Env.DB.Exec(ctx, "COMMIT", "SELECT "+outboxSchema+".outbox_wake()")
}

func total(members []*member) int {
	sum := 0
	for _, m := range members {
		sum += m.journal.Len()
	}
	return sum
}

// poll asks until the answer is yes.
func (f Fleet) poll(ctx context.Context, what string, every time.Duration,
	query func(context.Context) (bool, error),
) error {
	ticker := time.NewTicker(every)
	defer ticker.Stop()
	for {
		done, err := query(ctx)
		if done || (err != nil && ctx.Err() == nil) {
			return err
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return fmt.Errorf("drain: %d relays did not %s: %w", f.Relays, what, context.Cause(ctx))
		}
	}
}

func (f Fleet) balanced(ctx context.Context) (bool, error) {
	var owners, owned, uneven int
	err := f.Env.DB.Control.QueryRow(ctx, statement("balance")).Scan(&owners, &owned, &uneven)
	return owners == f.Relays && owned == lanes && uneven <= 1, err
}

func (f Fleet) settled(ctx context.Context) (bool, error) {
	var left bool
	err := f.Env.DB.Control.QueryRow(ctx, "SELECT EXISTS (SELECT FROM "+OutboxTable+" WHERE state <> 6)").Scan(&left)
	return !left, err
}

// meters reads the CPU time of the relays and of the server's processes for them.
func (f Fleet) meters(ctx context.Context, members []*member,
	turn *FleetTurn,
) (clients, servers time.Duration, err error) {
	processes := make([]int, len(members))
	for i, m := range members {
		processes[i] = m.command.Process.Pid
	}
	backends, err := f.Env.Backends(ctx)
	if err != nil {
		return 0, 0, err
	}
	turn.Connections = max(turn.Connections, len(backends))
	if clients, err = bench.CPUOf(processes); err != nil {
		return 0, 0, err
	}
	servers, err = bench.CPUOf(backends)
	return clients, servers, err
}

// kill ends the first relay in the middle of the drain and waits until its lanes have other owners.
func (f Fleet) kill(ctx context.Context, members []*member, turn *FleetTurn) error {
	var victim outbox.ID
	err := f.Env.DB.Control.QueryRow(ctx,
		"SELECT id FROM "+outboxSchema+".outbox_relays WHERE name = $1 AND ended_at IS NULL",
		members[0].name).Scan((*[16]byte)(&victim))
	if err != nil {
		return fmt.Errorf("drain: whom to kill: %w", err)
	}
	third := func(context.Context) (bool, error) { return total(members) >= f.Template.Events/3, nil }
	if err := f.poll(ctx, "publish a third", time.Millisecond, third); err != nil {
		return err
	}
	if err := members[0].command.Process.Kill(); err != nil {
		return fmt.Errorf("drain: kill: %w", err)
	}
	_ = members[0].command.Wait() // it was killed
	killed := time.Now()
	inherited := func(ctx context.Context) (bool, error) {
		var held int
		err := f.Env.DB.Control.QueryRow(ctx, "SELECT count(*) FROM "+outboxSchema+".outbox_lanes WHERE owner = $1",
			[16]byte(victim)).Scan(&held)
		return held == 0, err
	}
	err = f.poll(ctx, "take over", 20*time.Millisecond, inherited)
	turn.Takeover = time.Since(killed)
	return err
}

// assess reads the journals and the table.
func (f Fleet) assess(ctx context.Context, members []*member, turn *FleetTurn) error {
	expected, err := f.expected(ctx)
	if err != nil {
		return err
	}
	var arrivals []Arrival
	for i, m := range members {
		of := m.journal.Arrivals(i)
		turn.Shares = append(turn.Shares, len(of))
		arrivals = append(arrivals, of...)
	}
	turn.Verdict = Assess(expected, arrivals)
	result, err := f.Env.Result(ctx, OutboxTable)
	if err != nil {
		return err
	}
	turn.Charged = result.Charged
	turn.Transactions = result.Published - f.warmUp()
	times := make([]int64, 0, len(arrivals))
	for _, a := range arrivals {
		if a.Seq > int64(f.warmUp()) {
			times = append(times, a.At)
		}
	}
	if len(times) > 0 {
		slices.Sort(times)
		turn.Elapsed = result.Last.Sub(time.Unix(0, times[0]))
		turn.Until80 = time.Duration(times[len(times)*4/5] - times[0])
	}
	if result.Published != f.Template.Events {
		return fmt.Errorf("drain: of %d events the table has %d published", f.Template.Events, result.Published)
	}
	return nil
}

func (f Fleet) expected(ctx context.Context) (map[int64]Expected, error) {
	rows, err := f.Env.DB.Control.Query(ctx, "SELECT seq, id, aggregate_id FROM "+OutboxTable)
	if err != nil {
		return nil, fmt.Errorf("drain: expected events: %w", err)
	}
	expected := make(map[int64]Expected, f.Template.Events)
	var seq int64
	var id [16]byte
	var account string
	_, err = pgx.ForEachRow(rows, []any{&seq, &id, &account}, func() error {
		expected[seq] = Expected{ID: id, Account: int32(accountNumber(account))}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("drain: expected events: %w", err)
	}
	return expected, nil
}
