package conformance

import (
	"fmt"
	"strings"
	"testing"
)

// page is a whole page in which one row differs.
func page(id, lastCell string) string {
	var text strings.Builder
	for _, each := range IDs() {
		cell := "later: somewhere"
		if each == id {
			cell = lastCell
		}
		fmt.Fprintf(&text, "| %s | what | `code.go` | %s |\n", each, cell)
	}
	return text.String()
}

func results(t *testing.T, lines ...string) Results {
	t.Helper()
	r := Results{}
	if err := r.Add(strings.NewReader(strings.Join(lines, "\n")), "example.com/m"); err != nil {
		t.Fatal(err)
	}
	return r
}

func TestCheckFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	pass := `{"Action":"pass","Package":"example.com/m/test/suite/emit","Test":"TestA"}`
	for _, test := range []struct {
		name    string
		page    string
		lines   []string
		problem string
	}{
		{"all is well", page("EM-1", "`test/suite/emit.TestA`"), []string{pass}, ""},
		{
			"a named test that did not run", page("EM-1", "`test/suite/emit.TestB`"),
			[]string{pass},
			"TestB did not pass (it did not run)",
		},
		{"a named test of another package", page("EM-1", "`test/other.TestA`"), []string{pass}, "it did not run"},
		{
			"a named test that failed", page("EM-1", "`test/suite/emit.TestA`"),
			[]string{`{"Action":"fail","Package":"example.com/m/test/suite/emit","Test":"TestA"}`},
			"(fail)",
		},
		{
			"a named test that was skipped", page("EM-1", "`test/suite/emit.TestA`"),
			[]string{`{"Action":"skip","Package":"example.com/m/test/suite/emit","Test":"TestA"}`},
			"(skip)",
		},
		{
			"passed once and failed once", page("EM-1", "`test/suite/emit.TestA`"),
			[]string{`{"Action":"fail","Package":"example.com/m/test/suite/emit","Test":"TestA"}`, pass},
			"(fail)",
		},
		{
			"only a subtest passed", page("EM-1", "`test/suite/emit.TestA`"),
			[]string{`{"Action":"pass","Package":"example.com/m/test/suite/emit","Test":"TestA/x"}`},
			"it did not run",
		},
		{"neither test nor promise", page("EM-1", "soon"), nil, "EM-1: names no test"},
		{"a row is missing", strings.Replace(page("", ""), "| EM-2 |", "| xx |", 1), nil, "EM-2: 0 rows"},
		{"a row stands twice", page("", "") + "| EM-2 | what | where | later: x |\n", nil, "EM-2: 2 rows"},
		{
			"an id that does not exist", page("", "") + "| EM-99 | what | where | later: x |\n", nil,
			"EM-99: there is no such requirement",
		},
	} {
		_, problems := Check(test.page, results(t, test.lines...))
		got := strings.Join(problems, "; ")
		if test.problem == "" && got != "" || !strings.Contains(got, test.problem) {
			t.Errorf("%s: got %q, want %q", test.name, got, test.problem)
		}
	}
}

func TestRowsTellTestsFromPromises(t *testing.T) {
	t.Parallel()
	rows := Rows("| EM-1 | x | `outbox.Emit` | `outbox.TestA` `test/suite/emit.FuzzB`, `a/b-c.ExampleC` |\n| EM-12 | x " +
		"| | later: the relay |\n| not a row |\n")
	if len(rows) != 2 || len(rows[0].Tests) != 3 || rows[0].Later != "" || rows[1].Later != "the relay" {
		t.Errorf("got %+v", rows)
	}
}

func TestEveryTestThatAPageNamesMustPass(t *testing.T) {
	t.Parallel()
	page := "What `outbox.TestA` shows.\n\n| K1 | what was wrong | `test/suite/emit.FuzzB` `outbox.TestA` |\n"
	a := `{"Action":"pass","Package":"example.com/m/outbox","Test":"TestA"}`
	b := `{"Action":"pass","Package":"example.com/m/test/suite/emit","Test":"FuzzB"}`
	if tests, problems := CheckNamed(page, results(t, a, b)); len(tests) != 2 || len(problems) != 0 {
		t.Errorf("got %d tests, want 2, and the problems %q", len(tests), problems)
	}
	if _, problems := CheckNamed(page, results(t, a)); len(problems) != 1 ||
		!strings.Contains(problems[0], "FuzzB did not pass (it did not run)") {
		t.Errorf("got %q, want that FuzzB did not run", problems)
	}
}

func TestAFileThatIsNotThereIsNamed(t *testing.T) {
	t.Parallel()
	page := "| EM-1 | x | `schema/outbox/00010_jobs.sql`, `relay/operator/job.go`, `job.go`, `outbox/Emit` | x |\n"
	problems := CheckFiles(page, func(path string) bool { return path == "relay/operator/job.go" })
	if got := strings.Join(problems, "; "); got != "there is no file schema/outbox/00010_jobs.sql" {
		t.Errorf("got %q", got)
	}
}
