package publisher_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

// standInPage writes a page whose first steps are these.
func standInPage(t *testing.T, steps ...string) (page string) {
	t.Helper()
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "page.md")
	text := "# Page\n\n## First\n\n```sh\n" + strings.Join(steps, "\n") + "\n```\n\n## Second\n\n```sql\nSELECT 1;\n```\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if page, err = filepath.Rel(root, file); err != nil {
		t.Fatal(err)
	}
	return page
}

const (
	// A publisher, as far as a log tells, beside a NATS that has no stream.
	standInRun = `services/services up nats && echo the publisher starts && exec tail -f /dev/null`
	// An event that nobody has emitted.
	standInEvent = `echo "emitted  01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e media_uploaded"; echo "arrived  ` +
		`pf-domain-events after 1 ms"`
)

// Steps that do not do what the page promises are found: no publisher, no event, and a server without a stream, on
// which nothing can be published.
func TestFirstStepsThatDoNotWork(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		steps []string
		want  string
	}{
		"no publisher":      {[]string{"make help", "make example-event"}, "it ended without"},
		"the second fails":  {[]string{standInRun + " # runs", "false"}, "stock: false: exit status 1"},
		"no event":          {[]string{standInRun, "true"}, "no step says that an event was emitted and has arrived"},
		"no stream":         {[]string{standInRun, standInEvent}, "the stream of pf-domain-events"},
		"it does not drain": {[]string{standInRun, standInEvent}, `it ended without "the publisher has stopped"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			fresh, err := publisher.NewFresh("../../..")
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() {
				if err := fresh.Close(); err != nil {
					t.Error(err)
				}
			})
			walk := publisher.Stock(t.TempDir())
			walk.Page, walk.Section, walk.Patience = standInPage(t, test.steps...), "First", 5*time.Second
			walked, err := fresh.Walk(t.Context(), walk, t.Output())
			found := []string{}
			if err != nil {
				found = append(found, err.Error())
			} else {
				found = append(found, walked.Problems...)
			}
			wanted(t, found, test.want)
		})
	}
}

// The steps of a page are the commands of the section's own block, and its query.
func TestReadSteps(t *testing.T) {
	t.Parallel()
	page := "# Title\n\n## One\n\n```sh\n# first\nmake a   # does a\n\nmake b S=\"x y\"\n```\n\n```sql\nSELECT 1;\n```\n" +
		"\n## Two\n\n```sh\nmake c\n```\n"
	steps, err := publisher.ReadSteps(page, "One")
	if err != nil || strings.Join(steps.Commands, "|") != `make a|make b S="x y"` || steps.Query != "SELECT 1;" {
		t.Errorf("read %q, %v", steps, err)
	}
	for _, section := range []string{"Two", "Three"} {
		if steps, err := publisher.ReadSteps(page, section); err == nil {
			t.Errorf("%s: read %q", section, steps)
		}
	}
}
