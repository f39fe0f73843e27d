package browser_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'"

// pages are what the browser is shown: one in order, and one for each fault that a page can have.
var pages = map[string]string{
	"/well": `<!doctype html><html lang="en"><head><title>Well</title>
		<meta name="viewport" content="width=device-width"><link rel="icon" href="/icon"></head><body>
		<main><h1>Hello</h1><p>a &lt;b&gt; c</p><details><summary>More</summary>closed</details>
		<label>Name <input value="in a field"></label></main></body></html>`,
	"/dialog": `<!doctype html><title>d</title><link rel="icon" href="/icon"><p id=p>x<script src="/alert.js"></script>`,
	"/inline": `<!doctype html><title>i</title><link rel="icon" href="/icon"><img src=x onerror="alert(2)">`,
	"/error":  `<!doctype html><title>e</title><link rel="icon" href="/icon"><script src="/throw.js"></script>`,
	"/wide": `<!doctype html><title>w</title><meta name=viewport content="width=device-width">
		<link rel="icon" href="/icon"><pre>` + strings.Repeat("x", 500) + `</pre>`,
	"/image": `<!doctype html><html lang="en"><title>m</title>
		<link rel="icon" href="/icon"><main><h1>m</h1><img src="/icon">`,
	"/moves": `<!doctype html><title>v</title><meta name=viewport content="width=device-width">
		<link rel="icon" href="/icon"><p>a<p>b<script src="/move.js"></script>`,

	"/alert.js": `alert(1)`,
	"/throw.js": `throw new Error("broken")`,
	"/move.js": `new PerformanceObserver(() => requestAnimationFrame(() => requestAnimationFrame(() => {
		const added = document.createElement('div'); added.style.height = '400px'; document.body.prepend(added)
	}))).observe({ type: 'paint', buffered: true })`,
}

func serve(t *testing.T) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, found := pages[r.URL.Path]
		switch {
		case strings.HasSuffix(r.URL.Path, ".js"):
			w.Header().Set("Content-Type", "text/javascript")
		case r.URL.Path == "/icon":
			w.Header().Set("Content-Type", "image/svg+xml")
			page, found = `<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>`, true
		default:
			w.Header().Set("Content-Type", "text/html; charset=utf-8")
			w.Header().Set("Content-Security-Policy", policy)
		}
		if !found {
			w.WriteHeader(http.StatusNotFound)
			page = "not here"
		}
		_, _ = fmt.Fprint(w, page)
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// TestWhatAPageReports: each fault is seen, and none where there is none.
func TestWhatAPageReports(t *testing.T) {
	t.Parallel()
	address := serve(t)
	b := start(t)
	phone, wide := open(t, b, browser.Phone), open(t, b, browser.Light)
	for path, want := range map[string]string{
		"/well": "", "/dialog": "dialog", "/inline": "csp", "/error": "error", "/wide": "wide", "/image": "axe",
		"/moves": "shift",
	} {
		page := phone
		if path == "/moves" {
			page = wide // Chromium takes what moves on a phone soon after it was turned for something else
		}
		if _, err := page.Open(t.Context(), address+path); err != nil {
			t.Fatal(err)
		}
		if got := faults(t, page, path); !slices.Contains(got, want) && want != "" || want == "" && len(got) != 0 {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// faults are the kinds of what is wrong with a page.
func faults(t *testing.T, page *browser.Page, path string) (kinds []string) {
	t.Helper()
	ctx := t.Context()
	if path == "/moves" {
		must(t, page.Until(ctx, `return window.shiftOfPosthaste.sum > 0`, nil))
	}
	seen, err := page.Seen(ctx)
	must(t, err)
	for kind, list := range map[string][]string{"dialog": seen.Dialogs, "csp": seen.CSP, "error": seen.Errors} {
		if len(list) > 0 {
			kinds = append(kinds, kind)
		}
	}
	width, window, err := page.Width(ctx)
	must(t, err)
	if width > window {
		kinds = append(kinds, "wide")
	}
	sum, _, err := page.Shift(ctx)
	must(t, err)
	if sum > 0 {
		kinds = append(kinds, "shift")
	}
	if found, err := page.Axe(ctx, ""); err != nil {
		t.Fatal(err)
	} else if slices.ContainsFunc(found, func(f browser.Fault) bool { return f.Impact == "critical" }) {
		kinds = append(kinds, "axe")
	}
	return kinds
}

// TestAPageIsUsed: its text is all of it, it is told that it is hidden, and pictures are taken.
func TestAPageIsUsed(t *testing.T) {
	t.Parallel()
	address, ctx := serve(t), t.Context()
	b := start(t)
	page := open(t, b, browser.Dark)
	if r, err := page.Open(ctx, address+"/missing"); err != nil || r.Status != http.StatusNotFound {
		t.Fatalf("%+v, %v", r, err)
	}
	if _, err := page.Open(ctx, address+"/well"); err != nil {
		t.Fatal(err)
	}
	must(t, page.Fill(ctx, "input", "filled in"))
	text, err := page.Text(ctx)
	must(t, err)
	for _, part := range []string{"Well", "a <b> c", "closed", "filled in"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q is not in %q", part, text)
		}
	}
	must(t, page.Hide(ctx, true))
	var state string
	must(t, page.Eval(ctx, `const dark = matchMedia('(prefers-color-scheme: dark)')
		return document.visibilityState + dark.matches`, nil, &state))
	if state != "hiddentrue" {
		t.Errorf("it is %s", state)
	}
	if paint, err := page.FirstPaint(ctx); err != nil || paint <= 0 {
		t.Errorf("first paint after %v ms, %v", paint, err)
	}
	picture := filepath.Join(t.TempDir(), "well.png")
	must(t, page.Screenshot(ctx, picture, true))
	if content, err := os.ReadFile(picture); err != nil || !strings.HasPrefix(string(content), "\x89PNG") {
		t.Errorf("no picture: %v", err)
	}
	if err := page.Eval(ctx, `throw new Error('no')`, nil, nil); err == nil || !strings.Contains(err.Error(), "no") {
		t.Errorf("an error of a script is %v", err)
	}
	must(t, page.Close(ctx))
}

func start(t *testing.T) *browser.Browser {
	t.Helper()
	b, err := browser.Start(t.Context())
	must(t, err)
	t.Cleanup(func() { must(t, b.Close()) })
	return b
}

func open(t *testing.T, b *browser.Browser, view browser.View) *browser.Page {
	t.Helper()
	page, err := b.Page(t.Context(), view)
	must(t, err)
	return page
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
