package ops

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/process"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// run is one proof.
type run struct {
	plan     Plan
	db       *database
	load     *load
	broker   *broker
	seeds    []outbox.ID
	started  int // processes
	children []*process.Process
	say      io.Writer
	began    time.Time
	logged   *server.Output
	report   *Report
	// canceled is the action whose copies were canceled.
	canceled outbox.ID
}

// Run makes the proof. It says on say how far it is.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	r := &run{plan: plan, say: say, began: time.Now(), logged: &server.Output{}, report: &Report{plan: plan}}
	if r.db, err = newDatabase(ctx, plan); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.db.Close()) }()
	defer func() {
		for _, child := range r.children {
			child.Kill()
		}
	}()
	if r.seeds, err = r.db.fill(ctx, plan); err != nil {
		return nil, err
	}
	r.sayf("%d dead letters of %d aggregates, and %d events", plan.Dead, plan.Aggregates, len(r.seeds))
	if err := r.live(ctx); err != nil {
		return nil, err
	}
	if err := r.check(ctx); err != nil {
		return nil, err
	}
	r.report.Warnings, r.report.Seconds = warnings(r.logged.String()), time.Since(r.began).Seconds()
	return r.report, nil
}

// warnings counts what relays warned of, but for the pause that the proof itself has ordered.
func warnings(log string) (n int) {
	for line := range strings.Lines(log) {
		if !strings.Contains(line, `msg="paused by an operator" scope=topic name=`+canceledTopic+" ") {
			n++
		}
	}
	return n
}

func (r *run) sayf(format string, args ...any) {
	// of no consequence
	_, _ = fmt.Fprintf(r.say, "proof-ops: %5.1f s: %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// relays is how many there are.
const relays = 2

// live runs relays and producers, and all parts of the proof meanwhile.
func (r *run) live(ctx context.Context) (err error) {
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	bell := outbox.NewDoorbell(outbox.RingPgx(r.db.Producers, outbox.DefaultSchema))
	defer bell.Close()
	r.load = newLoad(r.plan, r.db.Producers, bell)
	r.broker = &broker{load: r.load}
	for number := range relays {
		stop, err := r.startRelay(ctx, number, fail)
		if err != nil {
			return err
		}
		defer func() { err = errors.Join(err, stop()) }()
	}
	stop, loaded := make(chan struct{}), make(chan error, 1)
	go func() {
		err := r.load.run(ctx, stop)
		if err != nil {
			fail(err)
		}
		loaded <- err
	}()
	err = r.parts(ctx)
	close(stop)
	if err = errors.Join(err, <-loaded); err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	return r.settled(ctx)
}

// parts are the parts of the proof, one after the other.
func (r *run) parts(ctx context.Context) error {
	if err := r.control(ctx); err != nil {
		return err
	}
	// First the rows that nobody takes back, then the copies of what they have become.
	behind := r.broker.number()
	following := make(chan error, 1)
	go func() { following <- r.load.follow(ctx) }()
	redrive, err := r.job(ctx, "redrive", order{
		Action: newAction("the topic takes them now"), Verb: operator.VerbRedrive, Filter: "topic:" + ordersTopic,
		Rate: r.plan.JobRate, Max: int64(r.plan.Dead),
	})
	if err = errors.Join(err, <-following); err != nil {
		return err
	}
	r.report.Redrive = redrive
	redrive.Latency.measure(r, ordersTopic, behind)
	if err := r.viewer(ctx); err != nil {
		return err
	}
	behind = r.broker.number()
	if r.report.Replay, err = r.job(ctx, "replay", order{
		Action: newAction("a new consumer"), Verb: operator.VerbRedeliver, Filter: "topic:" + ordersTopic,
		Topic: replayTopic, Rate: r.plan.JobRate, Max: int64(r.plan.Dead + r.plan.followers()),
	}); err != nil {
		return err
	}
	r.report.Replay.Latency.measure(r, replayTopic, behind)
	r.report.Copies = r.broker.count(replayTopic, 0)
	return r.cancel(ctx)
}

// control measures live events twice, while nobody repairs anything.
func (r *run) control(ctx context.Context) error {
	// Until live events arrive as fast as they are emitted.
	for deadline := time.Now().Add(r.plan.Patience); r.broker.count(liveTopic, 0) < r.plan.LiveRate; {
		if time.Now().After(deadline) {
			return fmt.Errorf("ops: %d live events have arrived within %s", r.broker.count(liveTopic, 0), r.plan.Patience)
		}
		if err := wait.For(ctx, 10*time.Millisecond); err != nil {
			return err
		}
	}
	if err := r.current(ctx); err != nil {
		return err
	}
	for i := range r.report.Control {
		from := r.load.since()
		if err := wait.For(ctx, r.plan.Control); err != nil {
			return err
		}
		to := r.load.since()
		if err := r.current(ctx); err != nil {
			return err
		}
		s := &r.report.Control[i]
		s.of(r.load.latencies(func(at int64) bool { return at >= from && at < to }), time.Duration(to-from))
		r.sayf("before: %.0f live events/s, p50 %s, p99 %s", s.Rate, s.P50, s.P99)
	}
	return nil
}

// current waits until every live event that is committed now has arrived.
func (r *run) current(ctx context.Context) error {
	now := r.load.since()
	return r.until(ctx, "live events arrive", func() (bool, error) {
		for n := range r.load.ids {
			at := r.load.committed[n].Load()
			if at > now || time.Duration(n)*time.Second/time.Duration(r.plan.LiveRate) > time.Duration(now) {
				break
			}
			if at != 0 && r.load.arrived[n].Load() == 0 {
				return false, nil
			}
		}
		return true, nil
	})
}

// settled waits until no order and no copy is open.
func (r *run) settled(ctx context.Context) error {
	if err := r.until(ctx, "nothing is open", func() (bool, error) {
		open, err := r.db.one(ctx, `SELECT ((SELECT count(*) FROM public.outbox_held WHERE kind <> 4) + (
			SELECT count(*) FROM public.outbox_events e
			 WHERE e.state = 0 AND e.created_at < clock_timestamp() - interval '2 seconds') + (
			SELECT count(*) FROM public.outbox_requests
			 WHERE delivered_at IS NULL AND canceled_at IS NULL AND failed_at IS NULL))::text`)
		return open == "0", err
	}); err != nil {
		return err
	}
	return r.current(ctx)
}

// until waits for a condition, for as long as the plan allows.
func (r *run) until(ctx context.Context, what string, so func() (bool, error)) error {
	for deadline := time.Now().Add(r.plan.Patience); ; {
		done, err := so()
		if err != nil || done {
			return err
		}
		if time.Now().After(deadline) {
			r.sayf("%s did not happen within %s", what, r.plan.Patience) // the checker says what is missing
			return nil
		}
		if err := wait.For(ctx, 50*time.Millisecond); err != nil {
			return err
		}
	}
}

// cancel starts another replay and cancels it in the middle, with all that is asked for and not sent.
func (r *run) cancel(ctx context.Context) error {
	what := order{
		Action: newAction("a mistake"), Verb: operator.VerbRedeliver, Filter: "topic:" + ordersTopic,
		Topic: canceledTopic, Rate: r.plan.JobRate, Max: int64(r.plan.Dead + r.plan.followers()),
	}
	r.canceled = what.Action.ID
	if err := r.startJob(ctx, what, nil); err != nil {
		return err
	}
	worker, err := r.start(task{Name: "worker"}, "")
	if err != nil {
		return err
	}
	defer worker.Kill()
	if err := r.await(ctx, what.Action.ID, "a quarter is asked for", func(j operator.Job) bool {
		return j.Done >= int64(r.plan.Dead/4)
	}); err != nil {
		return err
	}
	// A relay that keeps up would leave nothing to take back.
	person, stop := r.db.operator(), newAction("it was a mistake")
	if _, err := person.Pause(ctx, newAction("it looks odd"), operator.TopicScope(canceledTopic)); err != nil {
		return fmt.Errorf("ops: pause the topic: %w", err)
	}
	if err := r.await(ctx, what.Action.ID, "copies wait", func(j operator.Job) bool {
		return j.Done-int64(r.broker.count(canceledTopic, 0)) >= int64(10*r.plan.part())
	}); err != nil {
		return err
	}
	outcome, err := person.CancelJob(ctx, newAction("it was a mistake"), what.Action.ID)
	if err != nil || outcome != operator.Done {
		return fmt.Errorf("ops: cancel the job: %s, %w", outcome, err)
	}
	for left := int64(1); left > 0; {
		if _, left, err = person.Cancel(ctx, stop, what.Action.ID); err != nil {
			return err
		}
	}
	// What a relay had in hands it gave back in between: the count has these as well.
	canceled, err := person.Job(ctx, what.Action.ID)
	if err != nil {
		return err
	}
	r.report.Canceled = int(canceled.Copies.Canceled)
	acknowledged := r.broker.number()
	r.report.BeforeCancel = r.broker.count(canceledTopic, 0)
	if err := wait.For(ctx, r.plan.Linger); err != nil {
		return err
	}
	r.report.AfterCancel = r.broker.count(canceledTopic, acknowledged)
	r.sayf("canceled: %d copies had come, %d were taken back, %d came afterwards", r.report.BeforeCancel,
		r.report.Canceled, r.report.AfterCancel)
	return nil
}

// startRelay runs a relay until stop is called.
func (r *run) startRelay(ctx context.Context, number int, fail context.CancelCauseFunc) (stop func() error, err error) {
	contracts, err := registry()
	if err != nil {
		return nil, err
	}
	made, err := relay.New(relay.Config{
		Database: r.db.URL, Registry: contracts, Publisher: publish.PublisherFunc(r.broker.publish),
		Name:   fmt.Sprintf("proof-ops-%d", number),
		Logger: slog.New(slog.NewTextHandler(io.MultiWriter(r.say, r.logged), &slog.HandlerOptions{Level: slog.LevelWarn})),
	})
	if err != nil {
		return nil, err
	}
	running, end := context.WithCancel(ctx)
	done := make(chan error, 1)
	go func() {
		err := made.Run(running)
		if err != nil {
			fail(fmt.Errorf("ops: a relay: %w", err))
		}
		done <- err
	}()
	return func() error {
		end()
		return <-done
	}, nil
}
