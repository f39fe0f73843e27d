package console

import (
	"context"
	"fmt"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// Refresh is how pages were read again by themselves.
type Refresh struct {
	// Refreshed are the pages that were, Shifts how much of each has moved by itself across one refresh.
	Refreshed int
	Shifts    map[string]float64
	Moved     map[string][]string
	// Control, Hidden and Paused are how often the same page was read again meanwhile: in a tab that somebody sees, in one
	// that nobody sees, and in one that was paused. ShownAgain tells that the hidden one was when it was seen again,
	// ResumedAgain that the paused one was when it went on.
	Control, Hidden, Paused  int
	ShownAgain, ResumedAgain bool
}

// rereadsToSee is how often the control is read again while the others must not be.
const rereadsToSee = 3

// atRest tells whether nothing was asked for that is not there yet.
const atRest = `return !document.querySelector('.htmx-request, .htmx-swapping, .htmx-settling')`

// refresh looks at what pages do by themselves.
func (r *run) refresh(ctx context.Context) error {
	menu, err := r.menu(ctx, shopName)
	if err != nil {
		return err
	}
	report := &r.report.Refresh
	report.Shifts, report.Moved = map[string]float64{}, map[string][]string{}
	group, working := errgroup.WithContext(ctx)
	for _, p := range menu {
		group.Go(func() error { return r.shift(working, p) })
	}
	group.Go(func() error { return r.unseen(working) })
	return group.Wait()
}

// shift waits for one refresh of a page that has any.
func (r *run) shift(ctx context.Context, p page) error {
	t, err := r.tab(ctx, browser.Light)
	if err != nil {
		return err
	}
	if _, err := t.Open(ctx, t.address+marked(p.path, tabMark, "shift-"+p.name)); err != nil {
		return err
	}
	refreshes, err := t.Count(ctx, "#live[data-refresh]", "")
	if err != nil || refreshes == 0 {
		return err
	}
	before, _, err := t.Shift(ctx)
	if err != nil {
		return err
	}
	if err := r.reread(ctx, "shift-"+p.name, 1); err != nil {
		return err
	}
	if err := t.Until(ctx, atRest, nil); err != nil {
		return err
	}
	if err := t.Settle(ctx); err != nil {
		return err
	}
	after, of, err := t.Shift(ctx)
	if err != nil {
		return err
	}
	r.locked(func() {
		r.report.Refresh.Refreshed++
		r.report.Refresh.Shifts[p.name], r.report.Refresh.Moved[p.name] = after-before, of
	})
	return t.Close(ctx)
}

// unseen has three tabs open on the same page: one that is seen, one that nobody sees, and one that was paused.
func (r *run) unseen(ctx context.Context) error {
	tabs := map[string]*tab{}
	for _, name := range []string{"control", "hidden", "paused"} {
		t, err := r.tab(ctx, browser.Light)
		if err != nil {
			return err
		}
		if _, err := t.Open(ctx, t.address+inShop("events", tabMark, name)); err != nil {
			return err
		}
		tabs[name] = t
	}
	// Each refreshes, before it does not any more.
	for name := range tabs {
		if err := r.reread(ctx, name, 1); err != nil {
			return err
		}
	}
	if err := tabs["hidden"].Hide(ctx, true); err != nil {
		return err
	}
	if err := tabs["paused"].Click(ctx, "#pause", ""); err != nil {
		return err
	}
	// What was asked for before is under way.
	for _, t := range tabs {
		if err := t.Until(ctx, atRest, nil); err != nil {
			return err
		}
	}
	report := &r.report.Refresh
	control, hidden, paused := r.server.rereads("control"), r.server.rereads("hidden"), r.server.rereads("paused")
	if err := r.reread(ctx, "control", control+rereadsToSee); err != nil {
		return err
	}
	report.Control = r.server.rereads("control") - control
	report.Hidden, report.Paused = r.server.rereads("hidden")-hidden, r.server.rereads("paused")-paused
	if err := tabs["hidden"].Hide(ctx, false); err != nil {
		return err
	}
	report.ShownAgain = r.reread(ctx, "hidden", hidden+report.Hidden+1) == nil
	if err := tabs["paused"].Click(ctx, "#pause", ""); err != nil {
		return err
	}
	report.ResumedAgain = r.reread(ctx, "paused", paused+report.Paused+1) == nil
	for _, t := range tabs {
		if err := t.Close(ctx); err != nil {
			return err
		}
	}
	return nil
}

// reread waits until the page of a tab was read again so often.
func (r *run) reread(ctx context.Context, tab string, times int) error {
	if err := eventually.Within(ctx, r.plan.Patience, "the page of "+tab+" is read again", func() (bool, error) {
		return r.server.rereads(tab) >= times, nil
	}); err != nil {
		return fmt.Errorf("console: %w", err)
	}
	return nil
}
