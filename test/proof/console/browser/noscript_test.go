package browser_test

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/proof/console/browser"
)

// TestAPageWithoutScripts runs none of the page's, and still says what the page shows.
func TestAPageWithoutScripts(t *testing.T) {
	t.Parallel()
	address, ctx := serve(t), t.Context()
	b := start(t)
	view := browser.Light
	view.NoScript = true
	page := open(t, b, view)
	if _, err := page.Open(ctx, address+"/dialog"); err != nil {
		t.Fatal(err)
	}
	text, err := page.Text(ctx)
	must(t, err)
	seen, err := page.Seen(ctx)
	must(t, err)
	if !strings.Contains(text, "x") || len(seen.Dialogs) > 0 {
		t.Errorf("it shows %q and %q", text, seen.Dialogs)
	}
}
