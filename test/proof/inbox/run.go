package inbox

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/test/kit/gotest"
)

// Run plays the scenarios of the plan side by side, because in most of them everybody waits, and runs the tests
// meanwhile.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	w, err := openEnv(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	report := &Report{plan: plan, Tallies: map[string]*tally{}, tests: gotest.New(), began: time.Now()}
	var mu sync.Mutex
	play := func(ctx context.Context, name string) error {
		histories, err := w.scenario(ctx, name)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, h := range histories {
			v := check(h)
			report.Tallies[h.Consumer] = v
			// An error here is of no consequence.
			_, _ = fmt.Fprintf(say, "proof-inbox: %5.1f s: %s: %s\n", time.Since(report.began).Seconds(), h.Consumer, v)
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	if plan.Tests {
		group.Go(func() error { return report.runTests(ctx) })
	}
	for _, name := range plan.Scenarios {
		group.Go(func() error { return play(ctx, name) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	report.seconds = time.Since(report.began).Seconds()
	return report, nil
}

func (w *env) scenario(ctx context.Context, name string) ([]*history, error) {
	switch name {
	case theKilling:
		return w.killing(ctx)
	case theOneCall:
		return w.oneCall(ctx)
	case theStandstill:
		return w.standstill(ctx)
	case theForgetting:
		return w.forgetting(ctx)
	case theSlow:
		return w.slow(ctx)
	case theHopeless:
		return w.hopeless(ctx)
	}
	return nil, fmt.Errorf("inbox proof: no scene is called %q", name)
}
