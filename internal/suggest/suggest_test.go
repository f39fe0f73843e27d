package suggest_test

import (
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/suggest"
)

func TestDidYouMean(t *testing.T) {
	t.Parallel()
	known := []string{"relay.batch", "relay.poll", "broker"}
	for name, want := range map[string]string{
		"relay.bach": "; did you mean relay.batch?", "relay.bacth": "; did you mean relay.batch?",
		"BROKER": "; did you mean broker?", "zzz": "", "": "",
		strings.Repeat("relay.batch", 20): "",
	} {
		if got := suggest.DidYouMean(name, known); got != want {
			t.Errorf("%q: got %q, want %q", name, got, want)
		}
	}
}
