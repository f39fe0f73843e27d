package inboxstorm

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/test/gotest"
)

// command is the program whose processes die: the proof itself, built so that points are deadly.
const command = "github.com/posthaste-dev/posthaste/test/cmd/proof-inbox"

// Build builds the program with the tag crash, and others, into a folder.
func Build(ctx context.Context, folder string, tags ...string) (executable string, err error) {
	executable = filepath.Join(folder, "proof-inbox")
	text, err := exec.CommandContext(ctx, "go", "build", "-tags", strings.Join(append([]string{"crash"}, tags...), ","), "-o", executable, command).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("inboxstorm: build with the tag: %w: %s", err, text)
	}
	return executable, nil
}

// Run plays the scenes of the plan side by side, because in most of them everybody waits, and runs the tests meanwhile.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	w, err := openWorld(ctx, plan)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, w.close()) }()
	report := &Report{plan: plan, Tallies: map[string]*tally{}, tests: gotest.New(), began: time.Now()}
	var mu sync.Mutex
	play := func(ctx context.Context, name string) error {
		histories, err := w.scene(ctx, name)
		if err != nil {
			return err
		}
		mu.Lock()
		defer mu.Unlock()
		for _, h := range histories {
			v := judge(h)
			report.Tallies[h.Consumer] = v
			_, _ = fmt.Fprintf(say, "proof-inbox: %5.1f s: %s: %s\n", time.Since(report.began).Seconds(), h.Consumer, v) // of no consequence
		}
		return nil
	}
	group, ctx := errgroup.WithContext(ctx)
	if plan.Tests {
		group.Go(func() error { return report.runTests(ctx) })
	}
	for _, name := range plan.Scenes {
		group.Go(func() error { return play(ctx, name) })
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	report.seconds = time.Since(report.began).Seconds()
	return report, nil
}

func (w *world) scene(ctx context.Context, name string) ([]*history, error) {
	switch name {
	case theStorm:
		return w.storm(ctx)
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
	return nil, fmt.Errorf("inboxstorm: no scene is called %q", name)
}
