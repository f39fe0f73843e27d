package console

import (
	"context"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestOneUserLeavesRoomForOthers: whoever has their turns waits, and nobody else does.
func TestOneUserLeavesRoomForOthers(t *testing.T) {
	t.Parallel()
	var all turns
	over, cancel := context.WithCancel(t.Context())
	cancel()
	var ends []func()
	for range mostTurns {
		end, err := all.take(t.Context(), "greedy")
		if err != nil {
			t.Fatal(err)
		}
		ends = append(ends, end)
	}
	if _, err := all.take(over, "greedy"); err == nil {
		t.Error("there is one turn too many")
	}
	end, err := all.take(t.Context(), "other")
	if err != nil {
		t.Fatal(err)
	}
	for _, end := range append(ends, end) {
		end()
	}
	if len(all.of) != 0 {
		t.Errorf("%d users are still remembered", len(all.of))
	}
	again, err := all.take(t.Context(), "greedy")
	if err != nil {
		t.Fatal(err)
	}
	again()
}

// TestPointsOfAChartAreOfAsManyMinutes: at a steady rate each shows that rate, the newest as well.
func TestPointsOfAChartAreOfAsManyMinutes(t *testing.T) {
	t.Parallel()
	for _, minutes := range []int{1, 59, 180, 181, 359, 360, 1439, 1440, 4320} {
		all := make([]operator.Minute, minutes)
		for i := range all {
			all[i].Published = 60
		}
		points, each := thin(all)
		if len(points) > mostPoints || len(points)*each > minutes || len(points)*each <= minutes-each {
			t.Errorf("%d minutes are %d points of %d", minutes, len(points), each)
		}
		for i := range points {
			if points[i].Published != int64(60*each) {
				t.Errorf("of %d minutes point %d has %d events", minutes, i, points[i].Published)
			}
		}
	}
}

// TestTheWorstReasonIsFirst, and the others stay in their order.
func TestTheWorstReasonIsFirst(t *testing.T) {
	t.Parallel()
	status := &operator.Status{Health: operator.Broken, Reasons: []operator.Reason{
		{Code: "limited", Health: operator.Degraded, Text: "a limit"},
		{Code: "dead", Health: operator.Degraded},
		{Code: "topic_failing", Health: operator.Broken, Text: "a topic fails"},
	}}
	if got := sentence(status); got != "a topic fails" {
		t.Errorf("it says %q", got)
	}
	var order string
	for _, reason := range worstFirst(status.Reasons) {
		order += reason.Code + " "
	}
	if order != "topic_failing limited dead " || status.Reasons[0].Code != "limited" {
		t.Errorf("the order is %s, and was %s", order, status.Reasons[0].Code)
	}
}
