package operator

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/survey"
)

// reported is what a status says of a survey, reason by reason.
func reported(found *survey.Report, where identity) string {
	s := &Status{}
	s.take(found)
	s.report(found, where, nil)
	text := []string{string(s.Health)}
	for _, reason := range s.Reasons {
		text = append(text, reason.Code+": "+reason.Text)
	}
	return strings.Join(text, "\n")
}

// TestStatusOfADeadEventThatBlocks: that something waits behind it is not said, because nobody has looked.
func TestStatusOfADeadEventThatBlocks(t *testing.T) {
	t.Parallel()
	found := &survey.Report{Relays: 1, Dead: survey.Count{Events: 1}, BlockedAggregates: 1}
	if got := reported(found, identity{}); got != "degraded\ndead: 1 event is dead; 1 aggregate is blocked by that" {
		t.Errorf("got %s", got)
	}
}

// TestStatusAfterARestore: relays that wait for the resume write nothing, so nobody says that there is none.
func TestStatusAfterARestore(t *testing.T) {
	t.Parallel()
	found := &survey.Report{Ready: survey.Count{Events: 6}, UnheldLanes: 64}
	if got := reported(found, identity{known: true}); got != "broken\nrestored: the database was restored or copied, and "+
		"the relays publish nothing; one that waits for the resume does not show as alive" {
		t.Errorf("got %s", got)
	}
}

// TestStatusOfParkedEvents: there are two causes, and a status does not know which of them it is.
func TestStatusOfParkedEvents(t *testing.T) {
	t.Parallel()
	found := &survey.Report{Relays: 1, Parked: survey.Count{Events: 2}}
	if got := reported(found, identity{}); got != "degraded\nparked: 2 events are parked: no relay knows the type, or "+
		"most events of the type break its contract" {
		t.Errorf("got %s", got)
	}
}

// TestStatusOfPauses names what is paused, and not what is none.
func TestStatusOfPauses(t *testing.T) {
	t.Parallel()
	for want, paused := range map[string]survey.Pauses{
		"everything": {All: 1, Topics: 2}, "1 topic": {Topics: 1}, "2 types": {Types: 2},
		"2 topics and 1 type": {Topics: 2, Types: 1},
	} {
		found := &survey.Report{Relays: 1, Pauses: paused}
		if got := reported(found, identity{}); got != "degraded\npaused: operators have paused "+want {
			t.Errorf("got %s, want %s", got, want)
		}
	}
}
