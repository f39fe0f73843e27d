package main

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestListsHaveNoErrorOfWhatIsPublished: an attempt that failed before is history.
func TestListsHaveNoErrorOfWhatIsPublished(t *testing.T) {
	t.Parallel()
	for state, want := range map[string]string{"published": "", "retrying": "not now"} {
		for _, column := range eventColumns(time.Now()) {
			if column.Name != "ERROR" {
				continue
			}
			if got := column.Of(operator.Event{State: state, LastError: "not now"}); got != want {
				t.Errorf("%s: %q, want %q", state, got, want)
			}
		}
	}
}
