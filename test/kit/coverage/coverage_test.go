package coverage_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/coverage"
)

const profile = `mode: set
example.com/tree/outbox/a.go:1.2,3.4 2 0
example.com/tree/outbox/a.go:5.2,6.4 1 0
example.com/tree/outbox/a.go:1.2,3.4 2 1
example.com/tree/a.go:1.2,3.4 4 1
example.com/tree/test/a.go:1.2,3.4 4 1
example.com/another/a.go:1.2,3.4 9 1
`

// A block counts once, however many tests ran it or did not.
func TestProfile(t *testing.T) {
	t.Parallel()
	table, err := coverage.Profile(strings.NewReader(profile), "example.com/tree", func(folder string) bool {
		return folder != "test"
	})
	want := coverage.Table{"outbox": {Statements: 3, Covered: 2}, ".": {Statements: 4, Covered: 4}}
	if err != nil || !maps.Equal(table, want) {
		t.Errorf("got %v, %v, want %v", table, err, want)
	}
	if total := table.Total(); total != (coverage.Count{Statements: 7, Covered: 6}) {
		t.Errorf("in total %v", total)
	}
	for _, wrong := range []string{"example.com/tree/a.go:1.2,3.4 4\n", "nonsense\n", "<html>a b\n"} {
		if _, err := coverage.Profile(strings.NewReader(wrong), "example.com/tree",
			func(string) bool { return true }); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

func TestATableIsReadAsItWasWritten(t *testing.T) {
	t.Parallel()
	table := coverage.Table{
		"relay/internal/core": {Statements: 1000, Covered: 998}, ".": {Statements: 3, Covered: 0}, "empty": {},
	}
	var text strings.Builder
	if err := table.Write(&text); err != nil {
		t.Fatal(err)
	}
	again, err := coverage.Read(strings.NewReader(text.String()))
	if err != nil || !maps.Equal(again, table) {
		t.Errorf("got %v, %v from:\n%s", again, err, text.String())
	}
	for _, wrong := range []string{"", "package statements covered percent\n", "outbox many\n"} {
		if _, err := coverage.Read(strings.NewReader(wrong)); err == nil {
			t.Errorf("%q is read", wrong)
		}
	}
}

func TestCompare(t *testing.T) {
	t.Parallel()
	before := coverage.Table{"a": {Statements: 1000, Covered: 900}, "b": {Statements: 100, Covered: 50}}
	for name, test := range map[string]struct {
		after  coverage.Table
		groups [][]string
		want   string // the problem
	}{
		"the same":     {before, nil, ""},
		"higher":       {coverage.Table{"a": {1000, 950}, "b": {10, 9}}, nil, ""},
		"lower by 0.3": {coverage.Table{"a": {1000, 897}, "b": {100, 50}}, nil, ""},
		"lower by 0.4": {coverage.Table{"a": {1000, 896}, "b": {100, 50}}, nil, "a: 0.40 points lower"},
		"gone":         {coverage.Table{"a": {1000, 900}}, nil, "b: gone"},
		"a new one":    {coverage.Table{"a": {1000, 900}, "b": {100, 50}, "c": {10, 0}}, nil, ""},
		"moved":        {coverage.Table{"a": {1000, 900}, "c": {100, 50}}, [][]string{{"b", "c"}}, ""},
		"moved, and lower": {
			coverage.Table{"a": {1000, 900}, "c": {100, 49}}, [][]string{{"b", "c"}}, "b,c: 1.00 points lower",
		},
		"joined with another": {coverage.Table{"a": {1100, 950}}, [][]string{{"a", "b"}}, ""},
		"split, one half barely": {
			coverage.Table{"a": {500, 495}, "c": {500, 405}, "b": {100, 50}}, [][]string{{"a", "c"}}, "",
		},
	} {
		var problems []string
		for _, c := range coverage.Compare(before, test.after, test.groups) {
			if c.Problem != "" {
				problems = append(problems, c.Name+": "+c.Problem)
			}
		}
		got := strings.Join(problems, "; ")
		if test.want == "" && got != "" || !strings.Contains(got, test.want) {
			t.Errorf("%s: got %q, want %q", name, got, test.want)
		}
	}
}
