package main

import (
	"errors"
	"testing"

	"github.com/posthaste-dev/posthaste/relay/operator/audit"
)

// TestTheVerdictAboutNumbers: gaps are ordinary unless somebody is strict, and a sequence that is behind never is.
func TestTheVerdictAboutNumbers(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		numbers audit.Numbers
		strict  bool
		code    string
	}{
		"all are there":                 {audit.Numbers{Drawn: 3, Present: 3}, true, ""},
		"a gap":                         {audit.Numbers{Drawn: 3, Present: 2, Unused: 1, Gaps: 1}, false, ""},
		"a gap, strictly":               {audit.Numbers{Drawn: 3, Present: 2, Unused: 1, Gaps: 1}, true, "audit_found"},
		"between pruned ones, strictly": {audit.Numbers{Drawn: 3, Pruned: 2, Unused: 1, Within: 1}, true, "audit_found"},
		"one that others are counted twice for, strictly": {
			audit.Numbers{Drawn: 3, Present: 2, Pruned: 1, Gaps: 1, Meanwhile: 1}, true, "audit_found",
		},
		"behind": {audit.Numbers{Drawn: 3, Present: 10, Behind: 7}, false, "sequence_behind"},
	} {
		var found problem
		if err := numbersVerdict(c.numbers, c.strict); errors.As(err, &found) != (c.code != "") || found.code != c.code {
			t.Errorf("%s: %v, want %q", name, err, c.code)
		}
	}
}
