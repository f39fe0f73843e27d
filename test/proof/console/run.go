package console

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	kit "github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// run is one proof.
type run struct {
	plan    Plan
	db      *database
	shop    *shop
	hostile *hostile
	server  *server
	browser *browser.Browser
	say     io.Writer
	began   time.Time
	log     *kit.Output
	report  *Report
	mu      sync.Mutex // of the report
	// stopFlow ends the orders that come meanwhile.
	stopFlow func() error
}

// Run makes the proof. It says on say how far it is.
func Run(ctx context.Context, plan Plan, say io.Writer) (_ *Report, err error) {
	r := &run{plan: plan, say: say, began: time.Now(), log: &kit.Output{}}
	r.report = &Report{plan: plan, Plain: map[string]int{}}
	if r.db, err = newDatabase(ctx, plan.URL); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.db.Close()) }()
	log := slog.New(slog.NewTextHandler(r.log, nil))
	// What the shop's relays say of its troubles is of no use.
	r.shop, r.hostile = newShop(plan, r.db, slog.New(slog.DiscardHandler)), &hostile{db: r.db}
	defer func() { err = errors.Join(err, r.shop.Close()) }()
	defer r.hostile.Close()
	list, err := injections()
	if err != nil {
		return nil, err
	}
	if r.server, err = serve(ctx, r.db, textOf(list, "user", 0).Text, textOf(list, "address", 3).Text, log); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.server.Close()) }()
	if err := r.prepare(ctx); err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, r.browser.Close()) }()
	if err := r.parts(ctx); err != nil {
		return nil, err
	}
	r.report.Log = tail(r.log.String())
	r.report.Unseen, r.report.Seconds = r.server.unseen(), time.Since(r.began).Seconds()
	return r.report, nil
}

// tail is the end of a log.
func tail(log string) string { return log[max(0, len(log)-4_000):] }

func (r *run) sayf(format string, args ...any) {
	// of no consequence
	_, _ = fmt.Fprintf(r.say, "proof-console: %5.1f s: %s\n", time.Since(r.began).Seconds(), fmt.Sprintf(format, args...))
}

// prepare fills both outboxes, while the browser starts.
func (r *run) prepare(ctx context.Context) error {
	group, working := errgroup.WithContext(ctx)
	// Relays and browser go on after the group.
	group.Go(func() error { return r.shop.open(ctx) })
	group.Go(func() error { return r.hostile.fill(working) })
	group.Go(func() (err error) {
		r.browser, err = browser.Start(ctx)
		return err
	})
	if err := group.Wait(); err != nil {
		if r.browser != nil {
			err = errors.Join(err, r.browser.Close())
		}
		return err
	}
	r.report.Chromium = r.browser.Version
	r.sayf("Chromium %s, a shop with its troubles, and %d hostile texts", r.browser.Version, len(r.hostile.texts))
	return nil
}

// parts are the parts of the proof, one after the other.
func (r *run) parts(ctx context.Context) (err error) {
	flowing, stop := context.WithCancel(ctx)
	flown := make(chan error, 1)
	go func() { flown <- r.shop.flow(flowing, 200*time.Millisecond) }()
	r.stopFlow = sync.OnceValue(func() error {
		stop()
		return <-flown
	})
	defer func() { err = errors.Join(err, r.stopFlow()) }()
	for _, part := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"first paint", r.paints},
		{"every page, dark, light and on a phone", r.pages},
		{"without scripts", r.plain},
		{"hostile texts, and what refreshes by itself", r.meanwhile},
		{"every verb", r.verbs},
		{"the story", r.story},
	} {
		if !strings.Contains(part.name, r.plan.Part) {
			continue
		}
		if err := part.run(ctx); ctx.Err() != nil {
			return fmt.Errorf("%s: %w", part.name, context.Cause(ctx))
		} else if err != nil { // what comes next may say more
			r.report.Failed = append(r.report.Failed, fmt.Sprintf("%s: %v", part.name, err))
		}
		r.sayf("%s", part.name)
	}
	return nil
}

// meanwhile has pages refresh in some tabs, for which one must wait, while others are at the hostile outbox.
func (r *run) meanwhile(ctx context.Context) error {
	group, working := errgroup.WithContext(ctx)
	group.Go(func() error { return r.refresh(working) })
	group.Go(func() error { return r.injections(working) })
	return group.Wait()
}

// locked runs what several goroutines do to the report.
func (r *run) locked(do func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	do()
}

// add adds a visit, without the text that was read.
func (r *run) add(to *[]Visit, v Visit) {
	v.text = ""
	*to = append(*to, v)
}
