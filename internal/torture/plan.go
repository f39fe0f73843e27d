package torture

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// Plan is how much a run does, and what must have happened in it.
type Plan struct {
	// Name begins the last line.
	Name string
	// Run names the schema, and begins the topics' names. Defaults to what [NewRun] makes.
	Run string
	// Postgres is a database in which the run makes a schema of its own, and drops it in the end.
	Postgres string
	// ProducersVia and RelaysVia lead to the same database another way: through a proxy or a pooler. RelaysListen
	// is where relays listen for the doorbell, if not there.
	ProducersVia, RelaysVia, RelaysListen string
	// FirstVia leads the first of the relays to the database, in place of RelaysVia.
	FirstVia string
	// Broker is where the events go: nats://host:port, or pubsub://project?emulator=host:port. See broker.go.
	Broker string
	// BrokerVia leads the relays to the same broker another way.
	BrokerVia string
	// Folder takes the histories.
	Folder string
	// Executable is started with "relay" and a file's name as arguments, for every process of a relay.
	Executable string
	// FirstExecutable is started instead of it for the first of the relays, for instance one with the race detector.
	FirstExecutable string

	Relays     int
	Aggregates int
	Events     int
	// Production is how long producing the events shall take.
	Production time.Duration
	Producers  int
	Lease      time.Duration
	// Drain is how long nothing may move while something is left when the producers are done.
	Drain time.Duration
	Seed  uint64

	// Schedule is what is done to the run while the producers write.
	Schedule []Fault
	// Quiet leaves single faults out of what is said.
	Quiet bool
	// Unsteady tells that connections to the database break on purpose: producers and operators then go on.
	Unsteady bool
	// Forgetful tells that the database may lose what it has committed: then only the business rows tell in the end
	// what was committed, and not the answers that producers got.
	Forgetful bool
	// WithoutCopies tells that these relays know no requests to deliver an event again.
	WithoutCopies bool
	// Durable tells of a transaction that a forgetful database has lost whether a server that is gone had it on its
	// disk: what was published of it is no phantom. Defaults to no.
	Durable func(key string) bool
	// Duplicates is the least that there must have been.
	Duplicates int
	// Thorough asks for enough failures, dead letters, verbs of operators and odd transactions as well.
	Thorough bool
	// Audit has the audit that users have look at what the run left. The broker must be NATS, and nothing forgetful.
	Audit bool
	// Doomed is how many of 600 events are refused for good. Defaults to 3.
	Doomed int
	// Patience is how long a dead letter lies before an operator decides about it.
	Patience time.Duration
	// LostAcks is how many of 1000 publishes succeed and are reported as failed. Defaults to 3.
	LostAcks int
	// Environment is added to that of the relays' processes.
	Environment []string
	// Mutant names a bug that the publisher of all relays has. See mutant.go.
	Mutant string
}

// Floor is what the plan asks of a run.
func (p Plan) Floor() check.Floor {
	faults := map[check.FaultKind]int{}
	for _, fault := range p.Schedule {
		faults[fault.Kind] += fault.Least
	}
	return check.Floor{Committed: p.Events, Faults: faults, Duplicates: p.Duplicates, OrderedAggregates: p.Aggregates / 2}
}
