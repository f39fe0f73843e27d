package check_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// A run that tested too little fails, and says what was too little.
func TestTooLittle(t *testing.T) {
	t.Parallel()
	kill := fault(check.Fault{Kind: check.Kill, Point: "publish.after_ack"})
	enough := check.History{wrote(1, 2), delivery(1, 1), delivery(2, 2), delivery(3, 1), kill, end()}
	all := check.Floor{
		Committed: 2, Duplicates: 1, OrderedAggregates: 1, Points: []string{"publish.after_ack"},
		Faults: map[check.FaultKind]int{check.Kill: 1},
	}
	if v := enough.Check(all); !v.Pass() {
		report(t, v)
	}
	for _, c := range []struct {
		name    string
		floor   check.Floor
		history check.History
		says    string
	}{
		{"nothing", check.Floor{}, check.History{end()}, "committed is 0, at least 1"},
		{"committed", check.Floor{Committed: 3}, enough, "committed is 2, at least 3"},
		{"duplicates", check.Floor{Duplicates: 2}, enough, "duplicates is 1, at least 2"},
		{"aggregates", check.Floor{OrderedAggregates: 2}, enough, "ordered_aggregates is 1, at least 2"},
		{
			"kind",
			check.Floor{Faults: map[check.FaultKind]int{check.Pause: 1}},
			enough,
			"faults of kind pause is 0, at least 1",
		},
		{
			"kills", check.Floor{Faults: map[check.FaultKind]int{check.Kill: 2}}, enough, "faults of kind kill is 1, at least 2",
		},
		{"failpoint", check.Floor{Points: []string{"settle.before"}}, enough, "failpoint settle.before is 0"},
		{"no end", check.Floor{}, enough[:len(enough)-1], "no end record"},
		{"not drained", check.Floor{}, check.History{wrote(1), delivery(1, 1), ended(check.End{})}, "did not drain"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			v := c.history.Check(c.floor)
			if v.Pass() || len(v.TooLittle) != 1 || !strings.Contains(v.TooLittle[0], c.says) {
				t.Errorf("got %q, want a sentence with %q", v.TooLittle, c.says)
			}
			if len(v.Problems()) > 0 {
				report(t, v)
			}
		})
	}
}

func TestProblemsAreBounded(t *testing.T) {
	t.Parallel()
	history := check.History{end()}
	for n := range byte(100) {
		e := event(n + 1)
		e.Aggregate = fmt.Sprint(n)
		history = append(history, tx(check.OK, e))
	}
	v := history.Check(check.Floor{})
	if v.Count(check.Lost) != 100 || len(v.Problems()) != 20 {
		t.Errorf("%d problems, %s", len(v.Problems()), v.Line())
	}
	if p := v.Problems()[0]; p.Counter != check.Lost || p.ID != id(1) ||
		!strings.Contains(p.String(), "lost: event 00000000-0000-0000-0000-000000000001 was committed") {
		t.Errorf("the first problem is %q", p)
	}
}

func TestLineHasOnlyFigures(t *testing.T) {
	t.Parallel()
	v := check.History{wrote(1), delivery(1, 1), fault(check.Fault{Kind: "odd kind=1\n"}), end()}.Check(check.Floor{})
	for figure := range strings.FieldsSeq(v.Line()) {
		if strings.Count(figure, "=") != 1 {
			t.Errorf("%q is no figure", figure)
		}
	}
	if !strings.Contains(v.Line(), "fault_odd_kind_1_=1") || !strings.HasSuffix(v.Line(), "pass=true") {
		t.Error(v.Line())
	}
}
