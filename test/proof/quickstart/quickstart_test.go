package quickstart_test

import (
	"context"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/proof/quickstart"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// good is a report without a fault.
func good() *quickstart.Report {
	report := &quickstart.Report{
		Readme: &quickstart.Walked{Commands: 2, Seconds: 3, Delivered: "an event"},
		Module: &quickstart.Walked{Commands: 3, Seconds: 20, Delivered: "an event"},
		Blocks: quickstart.Blocks{All: 9, Run: 4, Compiled: 2, Compared: 2, NotRun: []string{"a.md:9: true: a reason"}},
	}
	for _, name := range []string{"table", "stream", "grant", "password", "database"} {
		report.Missing = append(report.Missing, &quickstart.Found{Name: name})
	}
	return report
}

// TestTheCheckerFindsWhatIsWrong: a report without a fault passes, and each of these does not.
func TestTheCheckerFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	var last strings.Builder
	if ok, err := good().Print(&last); !ok || err != nil || !strings.HasSuffix(last.String(), " ok=true\n") {
		t.Fatalf("%t, %v\n%s", ok, err, &last)
	}
	for want, breakIt := range map[string]func(*quickstart.Report){
		"README: 4 commands, at most 3":       func(r *quickstart.Report) { r.Readme.Commands = 4 },
		"README: nothing was typed":           func(r *quickstart.Report) { r.Readme.Commands = 0 },
		"README: 30.5 s":                      func(r *quickstart.Report) { r.Readme.Seconds = 30.5 },
		"README: no event was on screen":      func(r *quickstart.Report) { r.Readme.Delivered = "" },
		"README: broken":                      func(r *quickstart.Report) { r.Readme.Problems = []string{"broken"} },
		"the module: 4 commands":              func(r *quickstart.Report) { r.Module.Commands = 4 },
		"the module: 31.0 s":                  func(r *quickstart.Report) { r.Module.Seconds = 31 },
		"the module: no event was on screen":  func(r *quickstart.Report) { r.Module.Delivered = "" },
		"it was not tried without a password": func(r *quickstart.Report) { r.Missing[3].Name = "x" },
		"a.md:3: it is broken": func(r *quickstart.Report) {
			r.Blocks.Problems = []string{"a.md:3: it is broken"}
		},
		"no block was compared":            func(r *quickstart.Report) { r.Blocks.Compared = 0 },
		"something came of 9 of 10 blocks": func(r *quickstart.Report) { r.Blocks.All = 10 },
		"16 blocks are not run": func(r *quickstart.Report) {
			r.Blocks.All, r.Blocks.NotRun = 24, make([]string, quickstart.MostNotRun+1)
		},
		"missing stream: it is silent": func(r *quickstart.Report) {
			r.Missing[1].Problems = []string{"missing stream: it is silent"}
		},
	} {
		report := good()
		breakIt(report)
		var said strings.Builder
		if ok, err := report.Print(&said); ok || err != nil || !strings.Contains(said.String(), want) ||
			!strings.HasSuffix(said.String(), " ok=false\n") {
			t.Errorf("%s: %t, %v\n%s", want, ok, err, &said)
		}
	}
	report := good()
	report.Short, report.Module.Seconds = true, 100
	if problems := report.Problems(); len(problems) > 0 {
		t.Errorf("the short form: %v", problems)
	}
}

// terminal types in a folder of the test's own.
func terminal(t *testing.T) quickstart.Terminal {
	t.Helper()
	return quickstart.Terminal{Folder: t.TempDir(), Environ: os.Environ(), Log: io.Discard}
}

const (
	shown = "✓ connected to PostgreSQL 18.4 at 127.0.0.1, database shop\n\n" +
		`03:14:15.926  order  order_created  order/1  {"total":12.5}  42 ms`
	// dev, as far as a terminal tells: it shows the event when the other command has written a file.
	standIn = `echo "✓ connected to PostgreSQL 15.1 at /tmp, database x"; echo "  psql"; echo "Ctrl-C ends it."; ` +
		`trap 'exit 0' INT; while [ ! -e event ]; do sleep 0.02; done; cat event`
	stays  = standIn + `; while :; do sleep 0.02; done`
	writes = `echo '01:02:03.004  order  order_created  order/1  {"total":12.5}  7 ms' > part && mv part event`
)

// TestAWalkFindsWhatDoesNotWork: each of these pages promises what does not happen.
func TestAWalkFindsWhatDoesNotWork(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		stays, other, shown, want string
	}{
		"nothing to try":   {stays, writes, shown, "dev says nothing to try with psql"},
		"it ends at once":  {"echo nothing", writes, shown, "was not shown"},
		"the other fails":  {stays, writes + "; false", shown, "false failed: exit status 1"},
		"no event":         {standIn, "echo no > part && mv part event", shown, "the event is not on screen"},
		"another event":    {standIn, strings.ReplaceAll(writes, "12.5", "13"), shown, "the event is not on screen"},
		"more is promised": {stays, writes, "a wonder\n" + shown, "the page shows what does not come"},
		"it dies": {
			strings.Replace(stays, "exit 0", "exit 3", 1), writes, shown, "ended badly: exit status 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			page := quickstart.Page{Install: "true", Stays: c.stays, Others: []string{c.other}, Shown: c.shown}
			walked, err := page.Walk(t.Context(), terminal(t), time.Minute)
			if err != nil {
				t.Fatal(err)
			}
			if all := strings.Join(walked.Problems, "\n"); !strings.Contains(all, c.want) {
				t.Errorf("want %q, got:\n%s", c.want, all)
			}
			if name == "nothing to try" && (walked.Delivered == "" || walked.Commands != 2 || len(walked.Problems) != 1) {
				t.Errorf("got %+v", walked)
			}
		})
	}
}

// TestWhatIsMissingMustBeSaid, and what is said must help.
func TestWhatIsMissingMustBeSaid(t *testing.T) {
	t.Parallel()
	in := terminal(t)
	good := quickstart.Missing{
		Name: "file", Command: `[ -e thing ] || { echo "run 'touch thing'"; false; }`, In: in,
		Says: []string{"touch thing"},
		Fix: func(ctx context.Context) (quickstart.Terminal, error) {
			_, err := in.Run(ctx, "touch thing")
			return in, err
		},
	}
	useless, silent, fine := good, good, good
	useless.Fix = func(context.Context) (quickstart.Terminal, error) { return in, nil }
	silent.Says, silent.Fix = []string{"create thing"}, nil
	fine.Command = "true"
	for _, c := range []struct {
		missing quickstart.Missing
		want    string
	}{
		{useless, "what it says does not help"}, {silent, `does not say "create thing"`}, {good, ""}, {fine, "did not fail"},
	} {
		found, err := c.missing.Try(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if all := strings.Join(found.Problems, "\n"); c.want == "" && all != "" || !strings.Contains(all, c.want) {
			t.Errorf("want %q, got:\n%s", c.want, all)
		}
	}
}

// TestREADMEBeginsWithTheQuickStart: on its first screen, and with few commands.
func TestREADMEBeginsWithTheQuickStart(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	page, err := quickstart.ReadPage(string(text), "Quick start")
	if err != nil {
		t.Fatal(err)
	}
	if page.Install != "go install github.com/posthaste-dev/posthaste/cmd/outboxctl@latest" ||
		page.Stays != "outboxctl dev" || len(page.Others) > quickstart.MostCommands-1 {
		t.Errorf("got %+v", page)
	}
	before, _, _ := strings.Cut(string(text), page.Shown[strings.LastIndex(page.Shown, "\n")+1:])
	if lines := strings.Count(before, "\n"); lines > 48 {
		t.Errorf("the event is shown in line %d: that is not the first screen", lines)
	}
	for _, wrong := range []string{"# Page\n", "# Page\n\n## Quick start\n\n```sh\ntrue\n```\n"} {
		if _, err := quickstart.ReadPage(wrong, "Quick start"); err == nil {
			t.Errorf("%q is taken for a quick start", wrong)
		}
	}
}
