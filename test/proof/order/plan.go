package order

import (
	"fmt"
	"io"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
)

// Name is how the proof calls itself.
const Name = "proof-order"

// Long is the whole proof.
func Long() torture.Plan {
	return torture.Plan{
		Name: Name, Relays: 4, Aggregates: 2000, Events: 50_000, Production: 75 * time.Second, Producers: 24,
		Lease: 3 * time.Second, Drain: 90 * time.Second,
		Schedule: []torture.Fault{
			torture.Kills(2500*time.Millisecond, 12), torture.Leaves(4*time.Second, 8), torture.Pauses(3*time.Second, 6),
			torture.Outages(15*time.Second, 3),
		},
		Duplicates: 10, Thorough: true, Audit: true,
	}
}

// Short is the form for every change.
func Short() torture.Plan {
	return torture.Plan{
		Name: Name, Relays: 4, Aggregates: 300, Events: 6000, Production: 12 * time.Second, Producers: 12,
		Lease: 3 * time.Second, Drain: 45 * time.Second,
		Schedule: []torture.Fault{
			torture.Kills(1800*time.Millisecond, 5), torture.Leaves(3*time.Second, 2), torture.Pauses(2500*time.Millisecond, 2),
			torture.Outages(5*time.Second, 2),
		},
		Duplicates: 1, Thorough: true, Audit: true,
	}
}

// CheckAgain checks the histories in a folder once more. What it prints begins with the name, if there is one.
func CheckAgain(to io.Writer, name, folder string) (bool, error) {
	verdict, err := torture.Check(folder, check.Floor{}, nil)
	if err != nil {
		return false, err
	}
	for _, problem := range verdict.Problems() {
		_, _ = fmt.Fprintln(to, "BROKEN:", problem) // the last line tells
	}
	if name != "" {
		name += " "
	}
	if _, err := fmt.Fprintln(to, name+verdict.Line()); err != nil {
		return false, fmt.Errorf("print: %w", err)
	}
	return verdict.Pass(), nil
}
