package look

import (
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/bench/steady"
)

// What flows while people look.
const (
	flowRate = 1_000 // events per second
	// every is how often somebody opens one more screen.
	every = 500 * time.Millisecond
	// The most that looking may make of the flow's latencies, or what stretches without it differ by, if that is more.
	mostP50, mostP99 = 1.3, 1.5
)

// Flow is how events flowed in one stretch.
type Flow struct {
	steady.Stretch

	Looked bool // ten consoles were open, and somebody opened one screen after the other
}

// settled makes the outbox one at rest: what is ready is published, and the relay that never was has left. What is
// dead, waits and is retried stays.
var settled = []string{
	"UPDATE public.outbox_events SET state = 6, published_at = now() WHERE state = 0",
	"UPDATE public.outbox_beats SET until = clock_timestamp() - interval '1 ms'",
	"VACUUM (ANALYZE) public.outbox_events",
}

// flow lets events flow while nobody looks and while many do, in turns. It returns also how long each screen took then.
func (r *run) flow(ctx context.Context) (list []Flow, lost int, times map[string][]time.Duration, err error) {
	load := steady.New(steady.Plan{
		Rate: flowRate, PerTx: 2, Workers: 32, Aggregates: 2_000, Drain: 5 * time.Minute,
		Longest: 4*time.Duration(r.plan.Pairs)*(r.plan.Settle+r.plan.Length) + 10*time.Minute,
	}, r.db, "bench-look", r.say)
	times = map[string][]time.Duration{}
	err = load.During(ctx, func(ctx context.Context) error {
		for i := range 2 * r.plan.Pairs {
			f := Flow{Looked: i%2 == i/2%2} // the order within a pair changes
			if err := wait.For(ctx, r.plan.Settle); err != nil {
				return err
			}
			from := load.Since()
			if err := r.stretch(ctx, f.Looked, times); err != nil {
				return err
			}
			to := load.Since()
			if err := wait.For(ctx, min(r.plan.Settle, time.Second)); err != nil { // the last events of the stretch
				return err
			}
			f.Stretch = load.Measure(from, to)
			list = append(list, f)
			r.sayf("%.0f events/s, looked at: %t, p50 %s, p99 %s", f.Offered, f.Looked, f.P50, f.P99)
		}
		return nil
	})
	_, lost = load.Count()
	return list, lost, times, err
}

// stretch is one of them.
func (r *run) stretch(ctx context.Context, look bool, times map[string][]time.Duration) error {
	over, end := context.WithTimeout(ctx, r.plan.Length)
	defer end()
	if !look {
		return wait.For(ctx, r.plan.Length)
	}
	list, closeAll, err := r.watch(ctx)
	defer closeAll()
	if err != nil {
		return err
	}
	left := make(chan error, 1)
	go func() { left <- r.leave(over, list) }()
	for at := time.Now(); over.Err() == nil; at = at.Add(every) {
		s := screens[r.opened%len(screens)]
		r.opened++
		took, err := r.first(ctx, s.path)
		if err != nil {
			end()
			<-left
			return err
		}
		times[s.name] = append(times[s.name], took)
		_ = wait.For(over, time.Until(at.Add(every))) // shorter when the stretch is over
	}
	return <-left
}

// middle is the median.
func middle(list []time.Duration) time.Duration {
	if len(list) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(list))[len(list)/2]
}
