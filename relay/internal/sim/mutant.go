package sim

import "github.com/posthaste-dev/posthaste/relay/internal/core"

// Mutant is a bug put into the simulation, to see whether the simulation finds it. The zero value is none.
type Mutant struct {
	// Store wraps the store of every call.
	Store func(sim *Simulation, store core.Store) core.Store
	// Incarnation names servers in another way; see [memstore.Config].
	Incarnation func(starts, recoveries int) string
	// WritersFirst lists the open transactions before it reads the sequence.
	WritersFirst bool
	// AckFirst lets the broker acknowledge what it then may lose.
	AckFirst bool
	// TimeoutIsAck takes a deadline that passed for an acknowledgement.
	TimeoutIsAck bool
	// Corrupt changes a byte of what the broker takes, now and then.
	Corrupt bool
	// ChargeOutages reports an outage as the event's fault.
	ChargeOutages bool
	// NoDeadline never tells the core that a publish was not answered.
	NoDeadline bool
}
