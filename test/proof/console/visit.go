package console

import (
	"context"
	"fmt"
	"net/url"

	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// Visit is a page that was opened, and what it reported.
type Visit struct {
	Name, Theme string
	Status      int
	Seen        browser.Seen
	Faults      []browser.Fault
	// Width is how wide the page is in a window that is Window wide; 0: nobody has measured it.
	Width, Window int

	// Beside are elements that reach beyond the window, where the page does.
	Beside []string

	text string
}

// beside finds the innermost elements that reach beyond the window and are not in a part that scrolls or hides.
const beside = `
	const out = [...document.querySelectorAll('body *')].filter(e => {
		if (e.getBoundingClientRect().right <= argument) return false
		const above = e => getComputedStyle(e).position === 'absolute' ? e.offsetParent : e.parentElement
		for (let p = above(e); p && p !== document.body; p = above(p))
			if (getComputedStyle(p).overflowX !== 'visible') return false
		return true
	})
	return out.filter(e => !out.some(o => o !== e && e.contains(o))).slice(0, 3).map(e => e.outerHTML.slice(0, 200))`

// wish is what is looked at on a page, beside what it reports by itself.
type wish struct {
	text, faults, width bool
	picture             string // the file that gets one; empty: none
}

// tab is a page of the browser with whoever looks at it.
type tab struct {
	*browser.Page

	view    browser.View
	address string // of the server
}

func (r *run) tab(ctx context.Context, view browser.View) (*tab, error) {
	page, err := r.browser.Page(ctx, view)
	if err != nil {
		return nil, err
	}
	return &tab{page, view, r.server.address}, nil
}

// look opens a path and sees what there is.
func (t *tab) look(ctx context.Context, path string, what wish) (v Visit, err error) {
	response, err := t.Open(ctx, t.address+path)
	if err != nil {
		return v, err
	}
	return t.see(ctx, path, response.Status, what)
}

// see looks at the page that is open.
func (t *tab) see(ctx context.Context, name string, status int, what wish) (v Visit, err error) {
	v = Visit{Name: name, Theme: t.view.Theme, Status: status}
	if what.picture != "" {
		if err := t.Screenshot(ctx, what.picture, false); err != nil {
			return v, err
		}
	}
	if what.width {
		if v.Width, _, err = t.Page.Width(ctx); err != nil {
			return v, err
		}
		v.Window = t.view.Width
		if v.Width > v.Window {
			if err := t.Eval(ctx, beside, v.Window, &v.Beside); err != nil {
				return v, err
			}
		}
	}
	if what.faults {
		if v.Faults, err = t.faults(ctx); err != nil {
			return v, err
		}
	}
	if what.text {
		if v.text, err = t.Text(ctx); err != nil {
			return v, err
		}
	}
	v.Seen, err = t.Seen(ctx)
	return v, err
}

// faults are those of the page as it is, and of all that can be opened on it.
func (t *tab) faults(ctx context.Context) ([]browser.Fault, error) {
	faults, err := t.Axe(ctx, "")
	if err != nil {
		return nil, err
	}
	const open = `let n = 0
		for (const closed of document.querySelectorAll('details:not([open])')) { closed.open = true; n++ }
		for (const closed of document.querySelectorAll('dialog:not([open])')) { closed.showModal(); n++ }
		return n`
	opened := 0
	if err := t.Eval(ctx, open, nil, &opened); err != nil || opened == 0 {
		return faults, err
	}
	more, err := t.Axe(ctx, "details[open], dialog[open]")
	return append(faults, more...), err
}

// marked is a path with a parameter more.
func marked(path, name, value string) string {
	at, err := url.Parse(path)
	if err != nil {
		panic(fmt.Sprintf("console: %q is a path of the proof's own: %v", path, err))
	}
	query := at.Query()
	query.Set(name, value)
	at.RawQuery = query.Encode()
	return at.String()
}

// said is what the page shows, for an error.
func (t *tab) said(ctx context.Context) (said string) {
	// Of no consequence: the error says what went wrong.
	_ = t.Eval(ctx, `return '\nthe page is ' + location.href + '\n' + document.body.innerText`, nil, &said)
	return said
}
