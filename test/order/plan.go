package order

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Plan is how much a run does, and what must have happened in it.
type Plan struct {
	PostgresURL, NATSURL string
	// Folder takes the histories.
	Folder string
	// Executable is started with "relay" and a file's name as arguments, for every life of a relay.
	Executable string

	Relays     int
	Aggregates int
	Events     int
	// Production is how long producing the events shall take.
	Production time.Duration
	Producers  int
	Lease      time.Duration
	// Calm is the pause between two blows against the fleet. Zero: nobody harms the relays.
	Calm time.Duration
	// Blows is what happens to relays, over and over. Defaults to kills, leaves and pauses in turn.
	Blows []check.FaultKind
	// Outages is how often the broker refuses a whole topic for a while.
	Outages int
	// Drain is how long the relays may take for what is left when the producers are done.
	Drain time.Duration
	Seed  uint64

	// Kills, Leaves, Pauses and Duplicates are the least that a run must have had.
	Kills, Leaves, Pauses, Duplicates int
	// Thorough asks for enough failures, dead letters, verbs of operators and odd transactions as well.
	Thorough bool
	// Environment is added to that of the relays' processes.
	Environment []string
	// Plant names a bug that the publisher of all relays has. See plant.go.
	Plant string
}

// Long is the whole proof.
func Long() Plan {
	return Plan{
		Relays: 4, Aggregates: 2000, Events: 50_000, Production: 75 * time.Second, Producers: 24, Lease: 3 * time.Second,
		Calm: 1200 * time.Millisecond, Outages: 4, Drain: 90 * time.Second,
		Kills: 12, Leaves: 8, Pauses: 6, Duplicates: 10, Thorough: true,
	}
}

// Short is the form for every change.
func Short() Plan {
	return Plan{
		Relays: 4, Aggregates: 300, Events: 6000, Production: 16 * time.Second, Producers: 12, Lease: 3 * time.Second,
		Calm: 1200 * time.Millisecond, Outages: 1, Drain: 45 * time.Second,
		Kills: 3, Leaves: 2, Pauses: 1, Duplicates: 1, Thorough: true,
	}
}
