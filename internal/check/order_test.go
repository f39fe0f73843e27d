package check_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

func TestOrder(t *testing.T) {
	t.Parallel()
	unordered := func(n byte) check.Event { e := event(n); e.Version = 0; return e }
	equal := func(n byte) check.Event { e := event(n); e.Version = 7; return e }
	testAll(t, []definition{
		{
			name: "swapped", count: check.OrderViolations,
			bad:  check.History{wrote(1, 2), delivery(1, 2), delivery(2, 1), end()},
			good: check.History{wrote(1, 2), delivery(1, 1), delivery(2, 2), end()},
		},
		{
			name: "writers that do not exclude one another", count: check.OrderViolations,
			bad:  check.History{wrote(1, 2), delivery(1, 2), delivery(2, 1), end()},
			good: check.History{tx(check.OK, unordered(1), unordered(2)), delivery(1, 2), delivery(2, 1), end()},
		},
		{
			name: "one transaction", count: check.OrderViolations,
			bad:  check.History{wrote(1, 2), delivery(1, 2), delivery(2, 1), end()},
			good: check.History{tx(check.OK, equal(1), equal(2)), delivery(1, 2), delivery(2, 1), end()},
		},
		{
			name: "the index decides, not the order of the file", count: check.OrderViolations,
			bad:  check.History{wrote(1, 2), delivery(2, 1), delivery(1, 2), end()},
			good: check.History{wrote(1, 2), delivery(2, 2), delivery(1, 1), end()},
		},
		{
			name: "over one that died", count: check.OrderViolations,
			bad:  check.History{wrote(1, 2, 3), row(2, check.Dead), letter(2, false, 1), delivery(1, 3), delivery(2, 1), end()},
			good: check.History{wrote(1, 2, 3), delivery(1, 1), row(2, check.Dead), letter(2, false, 2), delivery(2, 3), end()},
		},
		{
			name: "past a head that blocks", count: check.OrderViolations,
			bad: check.History{wrote(1, 2), row(1, check.DeadBlocking), letter(1, true, 1), delivery(1, 2), end()},
			good: check.History{
				wrote(1, 2), row(1, check.Dead), letter(1, true, 1), action(1, check.Skip, 1), delivery(1, 2), end(),
			},
		},
		{
			name: "past a head that is retried", count: check.OrderViolations,
			bad:  check.History{wrote(1, 2), row(1, check.Retrying), delivery(1, 2), ended(check.End{})},
			good: check.History{wrote(1, 2), row(1, check.Retrying), row(2, check.Waiting), ended(check.End{})},
		},
		{
			name: "before the head died", count: check.OrderViolations,
			bad:  check.History{wrote(1, 2), row(1, check.Dead), delivery(1, 2), letter(1, false, 2), end()},
			good: check.History{wrote(1, 2), row(1, check.Dead), letter(1, false, 1), delivery(1, 2), end()},
		},
		{
			name: "before the operator discarded the head", count: check.OrderViolations,
			bad: check.History{
				wrote(1, 2), row(1, check.Discarded), letter(1, true, 1), delivery(1, 2), action(1, check.Discard, 2), end(),
			},
			good: check.History{
				wrote(1, 2), row(1, check.Discarded), letter(1, true, 1), action(1, check.Discard, 1), delivery(1, 2), end(),
			},
		},
		{
			name: "redrive keeps the place", count: check.OrderViolations,
			bad: check.History{
				wrote(1, 2), letter(1, true, 1), action(1, check.Redrive, 1), delivery(1, 2), delivery(2, 1), end(),
			},
			good: check.History{
				wrote(1, 2), letter(1, true, 1), action(1, check.Redrive, 1), delivery(1, 1), delivery(2, 2), end(),
			},
		},
		{
			name: "a late copy of an older one is none", count: check.OrderViolations,
			bad: check.History{wrote(1, 2), delivery(1, 2), delivery(2, 1), end()},
			good: check.History{
				wrote(1, 2), delivery(1, 1), delivery(2, 2), delivery(3, 1), fault(check.Fault{Kind: check.Kill}), end(),
			},
		},
	})
}
