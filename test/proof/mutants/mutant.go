package mutants

import "slices"

// mutant is a mistake as data, and what must find it.
type mutant struct {
	name    string
	mistake string // what the code does wrong, in a sentence
	// of is the fault or the promise that the right code is about, as docs/internals/faults.md calls it, or the
	// requirement, as docs/internals/conformance.md does.
	of      string
	changes []change
	proof   proof // the cheapest that finds it
}

// change is made in a file, named from the root of the repository. What it changes must be there once; in a Go
// file it lies inside one function.
type change struct{ file, from, to string }

// all are all mutants, in the order of an event's path.
func all() []mutant {
	return slices.Concat(emitting, storing, holdingLanes, reading, publishing, failing, waiting, growing,
		settling, redelivery, jobs, limiting, erasing, history, consuming, looking, contracting, auditing)
}

// The folders of the tests that the tables name.
const (
	relayTests    = "relay"
	operatorTests = "relay/operator"
	coreTests     = "relay/internal/core"
	storeTests    = "relay/internal/pgstore"
	fleetTests    = "test/suite/relay"
	emitTests     = "test/suite/emit"
	schemaTests   = "test/suite/schema"
	natsTests     = "test/suite/broker/natsjetstream"
	pubsubTests   = "test/suite/broker/googlepubsub"
	inboxTests    = "test/suite/inbox"
	guardTests    = "test/suite/redisinbox"
	keyTests      = "inbox/redisinbox"

	minuteTests    = "relay/internal/minutes"
	retentionTests = "test/proof/retention"
	checkTests     = "relay/operator/check"
	auditTests     = "relay/operator/audit"
	backfillTests  = "relay/operator/backfill"
	commandTests   = "cmd/outboxctl"
	presentTests   = "cmd/outboxctl/internal/present"
	contractTests  = "outbox/contracts"
)

// The numbers of simulated worlds: at least three times as many as were ever needed for what uses them.
const (
	few  = 30
	some = 100
	many = 200
)

// Mutant is what there is to know about one.
type Mutant struct {
	Name string
	// Mistake says in a sentence what the code does wrong.
	Mistake string
	// Of is the fault or the promise that the right code is about, as docs/internals/faults.md calls it, or the
	// requirement, as docs/internals/conformance.md does.
	Of string
	// Proof is the proof that must find it, as one types it.
	Proof string
}

// List lists all mutants, in the order of an event's path.
func List() []Mutant {
	var list []Mutant
	for _, m := range all() {
		list = append(list, Mutant{Name: m.name, Mistake: m.mistake, Of: m.of, Proof: m.proof.String()})
	}
	return list
}
