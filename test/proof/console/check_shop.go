package console

import (
	"context"
	"errors"
	"path/filepath"

	"golang.org/x/sync/errgroup"

	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// shopViews are how each page of the shop is looked at, with a name for pictures.
var shopViews = map[string]browser.View{"dark": browser.Dark, "light": browser.Light, "phone": browser.Phone}

// pages looks at every page of the shop in both themes and on a phone: it reports nothing, everybody can use it, and
// nothing of it is beside the screen.
func (r *run) pages(ctx context.Context) error {
	all, err := r.shopPages(ctx)
	if err != nil {
		return err
	}
	r.report.Pages = len(all)
	group, working := errgroup.WithContext(ctx)
	for name, view := range shopViews {
		group.Go(func() error {
			t, err := r.tab(working, view)
			if err != nil {
				return err
			}
			for i, p := range all {
				what := wish{faults: name != "phone" && r.turn(i, name), width: true}
				if r.plan.Pictures != "" {
					what.picture = filepath.Join(r.plan.Pictures, p.name+"-"+name+".png")
				}
				v, err := t.look(working, p.path, what)
				if err != nil {
					return err
				}
				r.locked(func() { r.add(&r.report.Shop, v) })
			}
			return t.Close(working)
		})
	}
	return group.Wait()
}

// turn tells whether axe looks at a page in this theme.
func (r *run) turn(page int, theme string) bool {
	return r.plan.Themes > 1 || (page%2 == 0) == (theme == "dark")
}

// leastRead is how many characters every screen has for whoever reads it.
const leastRead = 150

// plain reads every screen in a browser without scripts, and uses a filter.
func (r *run) plain(ctx context.Context) error {
	menu, err := r.menu(ctx, shopName)
	if err != nil {
		return err
	}
	view := browser.Light
	view.NoScript = true
	t, err := r.tab(ctx, view)
	if err != nil {
		return err
	}
	const read = `return document.querySelector('main').innerText`
	for _, p := range menu {
		v, err := t.look(ctx, p.path, wish{})
		if err != nil {
			return err
		}
		text := ""
		if err := t.Eval(ctx, read, nil, &text); err != nil {
			return err
		}
		r.add(&r.report.Others, v)
		r.report.Plain[p.name] = len(text)
	}
	if _, err := t.Open(ctx, t.address+inShop("events")); err != nil {
		return err
	}
	if err := t.Fill(ctx, "#filter", "type:coupon_redeemed"); err != nil {
		return err
	}
	if err := t.Click(ctx, "button", "Search"); err != nil {
		return err
	}
	rows, err := t.Count(ctx, "tbody tr", "")
	if err != nil {
		return err
	}
	others, err := t.Count(ctx, "tbody tr:not(:has-text(\"coupon_redeemed\"))", "")
	r.report.PlainFilter = rows > 0 && others == 0
	return errors.Join(err, t.Close(ctx))
}

// pictures makes those of a page that is not opened by its address.
func (r *run) pictures(ctx context.Context, t *tab, name string) error {
	if r.plan.Pictures == "" {
		return nil
	}
	for view, how := range shopViews {
		if err := t.View(ctx, how); err != nil {
			return err
		}
		if err := t.Screenshot(ctx, filepath.Join(r.plan.Pictures, name+"-"+view+".png"), false); err != nil {
			return err
		}
	}
	return t.View(ctx, t.view)
}

// paints measures how long it takes until something of a page is seen.
func (r *run) paints(ctx context.Context) error {
	menu, err := r.menu(ctx, shopName)
	if err != nil {
		return err
	}
	t, err := r.tab(ctx, browser.Light)
	if err != nil {
		return err
	}
	r.report.Paints = map[string][]float64{}
	for range r.plan.Paints {
		for _, p := range menu {
			if _, err := t.Open(ctx, t.address+p.path); err != nil {
				return err
			}
			took, err := t.FirstPaint(ctx)
			if err != nil {
				return err
			}
			r.report.Paints[p.name] = append(r.report.Paints[p.name], took)
		}
	}
	return t.Close(ctx)
}
