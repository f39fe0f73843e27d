package operator_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestWhatDiffersBetweenErrors: what is quoted, and not what stands between two apostrophes.
func TestWhatDiffersBetweenErrors(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"can't reach the billing host, won't retry":  "can't reach the billing host, won't retry",
		"can't parse the payload, won't retry":       "can't parse the payload, won't retry",
		"no topic 'orders', and 'bills' isn't there": "no topic <text>, and <text> isn't there",
		"'it's' is the users' 3rd":                   "<text> is the users' <n>rd",
		"''":                                         "<text>",
		"no \"a\" but `b` at 12:30":                  "no <text> but <text> at <n>",
	} {
		if got := operator.Normalize(text); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}
