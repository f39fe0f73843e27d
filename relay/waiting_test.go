package relay

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/survey"
)

// TestWhatASurveyFoundGrowsOld: what waits is known only if both of its parts were answered, and since then.
func TestWhatASurveyFoundGrowsOld(t *testing.T) {
	t.Parallel()
	since := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	answered := survey.Part{At: since.Add(time.Second), Took: time.Millisecond}
	for name, c := range map[string]struct {
		parts map[string]survey.Part
		known bool
	}{
		"answered":            {map[string]survey.Part{"ready": answered, "held": answered}, true},
		"long ago":            {map[string]survey.Part{"ready": answered, "held": {At: since.Add(-1), Took: 1}}, false},
		"never answered":      {map[string]survey.Part{"ready": {At: answered.At}, "held": answered}, false},
		"it may not be asked": {map[string]survey.Part{"ready": answered}, false},
	} {
		waiting, known := waitingIn(survey.Report{
			Topics: map[string]survey.Count{"orders": {Events: 3, Oldest: time.Minute}}, Parts: c.parts,
		}, since)
		if known != c.known || known && (waiting["orders"].Events != 3 || waiting["orders"].Oldest != time.Minute) {
			t.Errorf("%s: %v, %t", name, waiting, known)
		}
	}
}
