package quickstart_test

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/services"
	"github.com/posthaste-dev/posthaste/test/proof/quickstart"
)

// fenced is a block of a page.
func fenced(language, text string) string { return "\n```" + language + "\n" + text + "\n```\n" }

// run runs the blocks of a page in a terminal of the test's own.
func run(t *testing.T, page string) *quickstart.Blocks {
	t.Helper()
	if _, err := exec.LookPath("psql"); err != nil {
		t.Fatal(err)
	}
	in := terminal(t).With("DATABASE_URL="+services.Postgres18(), "GOWORK=off", "GOFLAGS=-mod=mod", "GOPROXY=off")
	r := &quickstart.Runner{In: in, Scratch: t.TempDir(), Version: "latest", Patience: 10 * time.Second}
	blocks, err := r.RunBlocks(t.Context(), "page.md", page, "")
	if err != nil {
		t.Fatal(err)
	}
	return blocks
}

// goodPage has a block of each kind.
var goodPage = "# Page\n" +
	fenced("sh", "mkdir sub && cd sub\nname=world\nsleep 60 &") +
	fenced("sh", `kill $!; echo "hello $name, in $(basename "$PWD"), at $(date +%T)"; echo one; echo two; echo three`) +
	fenced("text", "hello world, in sub, at 01:02:03\n...\nthree") +
	"\n<!-- stays: other -->" + fenced("sh", `trap 'echo end; exit 0' INT; cd sub
until [ -e event ]; do sleep 0.02; done; cat event; while :; do sleep 0.02; done`) +
	fenced("sh", "echo 7 ms after >part && mv part event") +
	"\n<!-- shown by: other -->" + fenced("text", "42 ms after") +
	fenced("sql", "SELECT 1 AS one;") +
	fenced("text", " one\n-----\n   1\n(1 row)") +
	fenced("go", "package page\n\nimport \"fmt\"\n\nfunc First() { fmt.Println(second) }") +
	fenced("go", "package page\n\nconst second = 2") +
	"\n<!-- not run: it needs a Docker engine -->" + fenced("sh", "docker run false")

func TestAPageIsRun(t *testing.T) {
	t.Parallel()
	blocks := run(t, goodPage)
	if len(blocks.Problems) > 0 {
		t.Fatalf("%q", blocks.Problems)
	}
	if blocks.All != 11 || blocks.Run != 5 || blocks.Compiled != 2 || blocks.Compared != 3 || len(blocks.NotRun) != 1 ||
		!strings.Contains(blocks.NotRun[0], "docker run false: it needs a Docker engine") {
		t.Errorf("got %+v", blocks)
	}
}

// TestABrokenPageIsFound: each of these pages has one fault.
func TestABrokenPageIsFound(t *testing.T) {
	t.Parallel()
	hello := fenced("sh", "echo hello; echo world")
	for name, c := range map[string]struct{ page, want string }{
		"a command that fails":     {fenced("sh", "echo so far\nfalse\necho further"), "it showed: so far"},
		"the second of two":        {hello + fenced("sh", "cd nowhere"), "page.md:6: a command of it failed"},
		"another output":           {hello + fenced("text", "hello\nmoon"), `shows "moon", and printed was "world"`},
		"more is shown":            {hello + fenced("text", "hello\nworld\nmoon"), `shows "moon", which was not printed`},
		"less is shown":            {hello + fenced("text", "hello"), `printed was "world", which the page does not show`},
		"a text of nothing":        {fenced("text", "hello"), "no command is above it"},
		"SQL that fails":           {fenced("sql", "SELECT 1/0;"), "division by zero"},
		"another answer":           {fenced("sql", "SELECT 2 AS one;") + fenced("text", "one\n---\n1"), "the page shows"},
		"Go that does not compile": {fenced("go", "package page\n\nvar x int = \"\""), "page.md:5:"},
		"Go in part":               {fenced("go", "x := 1"), "a package clause is missing"},
		"nobody runs that":         {fenced("yaml", "a: b"), `nobody can run "yaml"`},
		"not run, and no reason":   {"<!-- not run -->" + fenced("sh", "false"), "the comment gives no reason"},
		"not run, hardly a reason": {"<!-- not run: no -->" + fenced("sh", "false"), "the comment gives no reason"},
		"a comment misspelt":       {"<!-- not ran: it needs Docker -->" + fenced("sh", "true"), "nobody knows what"},
		"no such terminal":         {"<!-- shown by: x -->" + fenced("text", "hello"), `there is no terminal "x"`},
		"it does not end":          {"```sh\ntrue\n", "it does not end"},
		"no block at all":          {"# Page\n", "no block is there"},
		"it ends by itself": {
			"<!-- stays: x -->" + fenced("sh", "echo hello; exit 3") + "<!-- shown by: x -->" + fenced("text", "world"),
			"has ended (exit status 3)",
		},
		"another folder in a new terminal": {
			fenced("sh", "mkdir sub && cd sub && touch log") + "<!-- stays: x -->" + fenced("sh", "ls log") +
				"<!-- shown by: x -->" + fenced("text", "log"),
			"has ended (exit status 2)",
		},
		"it ends badly": {
			"<!-- stays: x -->" + fenced("sh", "trap 'exit 3' INT; echo hello; while :; do sleep 0.02; done") +
				"<!-- shown by: x -->" + fenced("text", "hello"),
			"x ended badly: exit status 3",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if blocks := run(t, c.page); !strings.Contains(strings.Join(blocks.Problems, "\n"), c.want) {
				t.Errorf("want %q, got %q", c.want, blocks.Problems)
			}
		})
	}
}

func TestASectionIsReadAlone(t *testing.T) {
	t.Parallel()
	page := "# Page\n\n## A\n" + fenced("sh", "false") + "\n## B\n" + fenced("sh", "true") + "\n## C\n" +
		fenced("sh", "false")
	blocks, problems := quickstart.ReadBlocks("page.md", page, "B")
	if len(problems) > 0 || len(blocks) != 1 || blocks[0].Text != "true\n" || blocks[0].At() != "page.md:11" {
		t.Errorf("%+v, %v", blocks, problems)
	}
	if _, problems := quickstart.ReadBlocks("page.md", page, "D"); len(problems) != 1 {
		t.Errorf("a section that is not there: %v", problems)
	}
}

// TestWhatDiffersFromRunToRunIsMasked, and nothing else.
func TestWhatDiffersFromRunToRunIsMasked(t *testing.T) {
	t.Parallel()
	for page, printed := range map[string]string{
		"at 2026-11-19 14:02:03.123 UTC":                    "at 2025-01-02 01:00:00.5 UTC",
		"id 01a1f22e-9e19-7781-a2b6-f80cf6d60579 took 3 ms": "id 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e took 1.25 s",
		"14:58:21Z, 03:14:15.926":                           "01:02:03Z, 01:02:03.004",
		"A   B\n1   2":                                      "A B\n1     2",
		"PostgreSQL 18.4":                                   "PostgreSQL 15",
		"v0.0.0, go1.26.0":                                  "v0.1.0-rc.1, go1.26.8",
		"http://127.0.0.1:8087/":                            "http://127.0.0.1:40001/",
		"in " + filepath.Join("/", "home", "shop"):          "in /tmp/x-1/shop",
	} {
		if why := quickstart.Differs(page, printed, false); why != "" {
			t.Errorf("%q and %q: %s", page, printed, why)
		}
	}
	for page, printed := range map[string]string{
		"3 events": "4 events", "over 9.00": "over 8.00", "exit 1": "exit 2", "order/1001": "order/1002",
	} {
		if quickstart.Differs(page, printed, false) == "" || quickstart.Differs(page, printed, true) == "" {
			t.Errorf("%q is taken for %q", printed, page)
		}
	}
}
