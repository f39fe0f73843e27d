package inbox

import "time"

// Plan is how much a run does.
type Plan struct {
	// Postgres and Broker are the servers' addresses.
	Postgres, Broker string
	// Folder takes the journals.
	Folder string
	// Executable is the program that [Build] makes.
	Executable string
	// Environment is added to that of all processes.
	Environment []string

	// Scenarios are those to play, of [Scenarios].
	Scenarios []string
	// Tests tells to run the tests that show the faults which no killing shows, too.
	Tests bool
	// Results is a file of `scripts/test --keep` that tells what became of these tests. Empty: they are run.
	Results string

	// Events is how many the killing has.
	Events int
	// Passages is how often a process passes its point at most before it dies there.
	Passages int
	// Lost is how many consumers of the one-call form are killed between mark and effect.
	Lost int
	// Stills is how often a process stands still for longer than its holds last, in each form.
	Stills int
	// Outages is how often Redis dies.
	Outages int
	// Slow is how many events take longer than the broker waits.
	Slow int
	// Patience is how long it may last until there is less to handle than ever before.
	Patience time.Duration

	// Wrong forms stand in for right ones, to see them found. For the tests of this package.
	Wrong map[form]form
	// enough tells whether the mutant has shown itself: until then a scenario that goes on by itself does. For the
	// tests.
	enough func(tallies map[string]*tally) bool

	// The least that must have been tried.
	LeastKills   int // at each point of the killing
	LeastMeeting int // events of which two deliveries were at work at the same time, of each form
}

// Scenarios are all of them.
func Scenarios() []string {
	return []string{theKilling, theOneCall, theStandstill, theForgetting, theSlow, theHopeless}
}

// Long is the whole proof.
func Long() Plan {
	return Plan{
		Scenarios: Scenarios(), Tests: true, Events: 10_000, Passages: 40, Lost: 50, Stills: 10, Outages: 5, Slow: 24,
		Patience: 3 * time.Minute, LeastKills: 10, LeastMeeting: 50,
	}
}

// Short is the form for every change.
func Short() Plan {
	return Plan{
		Scenarios: Scenarios(), Tests: true, Events: 1200, Passages: 20, Lost: 10, Stills: 3, Outages: 2, Slow: 8,
		Patience: 3 * time.Minute, LeastKills: 2, LeastMeeting: 3,
	}
}
