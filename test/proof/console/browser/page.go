package browser

import (
	"context"
	"fmt"
	"maps"
)

// View is how a page is looked at.
type View struct {
	// Theme is dark or light.
	Theme         string
	Width, Height int
	// NoScript is a browser without JavaScript.
	NoScript bool
	// User and Password are sent with every request; empty: none.
	User, Password string
}

// The views that people have.
var (
	Light = View{Theme: "light", Width: 1280, Height: 900}
	Dark  = View{Theme: "dark", Width: 1280, Height: 900}
	Phone = View{Theme: "light", Width: 390, Height: 844}
)

// Page is a tab with cookies and a storage of its own.
type Page struct {
	browser *Browser
	id      string
}

// Seen is what a page has reported since it was last looked at.
type Seen struct {
	Dialogs []string // what alert, confirm, prompt and window.open showed
	CSP     []string // violations of its Content-Security-Policy
	Errors  []string // errors in its console, and of its scripts
}

// Fault is a fault of accessibility, as axe finds it.
type Fault struct {
	ID     string   `json:"id"`
	Impact string   `json:"impact"` // minor, moderate, serious or critical
	Help   string   `json:"help"`
	Nodes  []string `json:"nodes"`
}

// Response is what the server said.
type Response struct {
	Status int    `json:"status"`
	URL    string `json:"url"` // where redirects have led
}

// Page opens a tab.
func (b *Browser) Page(ctx context.Context, view View) (*Page, error) {
	p := &Page{browser: b}
	if err := b.command(ctx, "page", map[string]any{
		"theme": view.Theme, "width": view.Width, "height": view.Height, "javascript": !view.NoScript,
		"username": view.User, "password": view.Password,
	}, &p.id); err != nil {
		return nil, err
	}
	return p, nil
}

func (p *Page) command(ctx context.Context, name string, arguments map[string]any, into any) error {
	all := map[string]any{"page": p.id}
	maps.Copy(all, arguments)
	return p.browser.command(ctx, name, all, into)
}

// Close closes the tab.
func (p *Page) Close(ctx context.Context) error { return p.command(ctx, "close", nil, nil) }

// Open goes to an address, and waits until the page is drawn.
func (p *Page) Open(ctx context.Context, address string) (r Response, err error) {
	if err := p.command(ctx, "open", map[string]any{"url": address}, &r); err != nil {
		return r, fmt.Errorf("%s: %w", address, err)
	}
	return r, nil
}

// Seen is what the page has reported since the last call.
func (p *Page) Seen(ctx context.Context) (seen Seen, err error) {
	err = p.command(ctx, "seen", nil, &seen)
	return seen, err
}

// Eval runs the body of a function in the page, with argument, and reads what it returns.
func (p *Page) Eval(ctx context.Context, script string, argument, into any) error {
	return p.command(ctx, "eval", map[string]any{"script": script, "argument": argument}, into)
}

// Until waits until such a function returns something true.
func (p *Page) Until(ctx context.Context, script string, argument any) error {
	return p.command(ctx, "until", map[string]any{"script": script, "argument": argument}, nil)
}

// Text is what the page shows, as text, with what is in fields that can be filled in and in closed parts.
func (p *Page) Text(ctx context.Context) (text string, err error) {
	err = p.Eval(ctx, `
		for (const closed of document.querySelectorAll('details')) closed.open = true
		const fields = [...document.querySelectorAll('input:not([type=hidden]), textarea')].map(f => f.value)
		return [document.title, document.body.innerText, ...fields].join('\n')`, nil, &text)
	return text, err
}

// Width is how wide the page is, and how wide its window is.
func (p *Page) Width(ctx context.Context) (page, window int, err error) {
	var widths []int
	err = p.Eval(ctx, `return [document.documentElement.scrollWidth, window.innerWidth]`, nil, &widths)
	if err != nil || len(widths) != 2 {
		return 0, 0, err
	}
	return widths[0], widths[1], nil
}

// FirstPaint is how many milliseconds after the request something of the page was seen.
func (p *Page) FirstPaint(ctx context.Context) (milliseconds float64, err error) {
	const paints = `return performance.getEntriesByName('first-contentful-paint')`
	if err := p.Until(ctx, paints+`.length > 0`, nil); err != nil {
		return 0, err
	}
	err = p.Eval(ctx, paints+`[0].startTime`, nil, &milliseconds)
	return milliseconds, err
}

// Shift is how much of the page has moved by itself since it was opened, as Chromium counts it, and what.
func (p *Page) Shift(ctx context.Context) (sum float64, of []string, err error) {
	var shift struct {
		Sum float64
		Of  []string
	}
	err = p.Eval(ctx, `return window.shiftOfPosthaste`, nil, &shift)
	return shift.Sum, shift.Of, err
}

// Axe looks for faults of accessibility in the page as it is now, or in what a selector finds of it.
func (p *Page) Axe(ctx context.Context, within string) (faults []Fault, err error) {
	err = p.command(ctx, "axe", map[string]any{"within": within}, &faults)
	return faults, err
}

// Click clicks on the first element that a selector finds, with this text in it where there is one.
func (p *Page) Click(ctx context.Context, selector, text string) error {
	return p.command(ctx, "click", map[string]any{"selector": selector, "text": text}, nil)
}

// Fill writes into the first field that a selector finds, in the place of what is in it.
func (p *Page) Fill(ctx context.Context, selector, value string) error {
	return p.command(ctx, "fill", map[string]any{"selector": selector, "value": value}, nil)
}

// Choose chooses from a list.
func (p *Page) Choose(ctx context.Context, selector, value string) error {
	return p.command(ctx, "choose", map[string]any{"selector": selector, "value": value}, nil)
}

// Press presses a key.
func (p *Page) Press(ctx context.Context, key string) error {
	return p.command(ctx, "press", map[string]any{"key": key}, nil)
}

// Wait waits until the first element that a selector finds is seen.
func (p *Page) Wait(ctx context.Context, selector, text string) error {
	return p.command(ctx, "wait", map[string]any{"selector": selector, "text": text}, nil)
}

// Count is how many elements a selector finds now.
func (p *Page) Count(ctx context.Context, selector, text string) (n int, err error) {
	err = p.command(ctx, "count", map[string]any{"selector": selector, "text": text}, &n)
	return n, err
}

// View looks at the page as it is in another way; whether there are scripts stays as it was.
func (p *Page) View(ctx context.Context, view View) error {
	return p.command(ctx, "view", map[string]any{
		"theme": view.Theme, "width": view.Width, "height": view.Height,
	}, nil)
}

// Settle waits until the page is drawn.
func (p *Page) Settle(ctx context.Context) error { return p.command(ctx, "settle", nil, nil) }

// Hide tells the page that nobody sees it, or that somebody does again.
func (p *Page) Hide(ctx context.Context, hidden bool) error {
	return p.command(ctx, "hide", map[string]any{"hidden": hidden}, nil)
}

// Screenshot writes a picture: of what is in the window, or of the whole page.
func (p *Page) Screenshot(ctx context.Context, path string, whole bool) error {
	return p.command(ctx, "screenshot", map[string]any{"path": path, "whole": whole}, nil)
}
