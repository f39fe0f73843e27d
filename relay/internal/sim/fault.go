package sim

// Fault is one kind of thing that is done to a run.
type Fault int

// The faults.
const (
	StoreFailed     Fault = iota // a call of the store fails before it is done
	StoreAnswerLost              // it is done, and fails
	StoreSlow                    // it takes longer than it should, up to two leases
	DatabaseRestart              // what was not durable is gone, the sequence goes back
	Standby                      // a relay's calls reach a server in recovery
	LeaseLost                    // a lane is taken away
	ClockForward                 // the database's clock jumps
	ClockBack
	RelayKilled // with everything in flight
	RelayPaused // longer than its lease
	RelayStopped
	BrokerRejected // this event, for now
	BrokerTerminal // this event, forever
	AckLost        // the broker has it, and the relay is told otherwise
	OverDeadline   // accepted in time, acknowledged too late
	LateAccept     // accepted after the relay has given up
	Dropped        // never accepted, never answered
	PartOfBatch    // every other one of a batch is rejected
	TopicDown
	AllDown
	QuotaSpent
	Poison         // publishing it kills the relay
	ContractBroken // by one event
	BadDeploy      // by all events of a type
	OperatorPaused // everything, a topic or a type
	TimeoutBySize  // a read whose answer is large, on a link that is slow
	Failover       // a standby that is behind becomes the primary
	FloorInGap     // and a lane's floor had moved meanwhile
	BackendKilled  // the server recovers, and its postmaster goes on
	PreparedKept   // a prepared transaction that is open across one of these, or a restart
	TopicRejects   // every message of a topic, as if each were what is wrong
	Faults         // how many there are
)

var faultNames = [Faults]string{
	"store_refused", "store_answer_lost", "store_slow", "database_restart", "standby", "lease_lost", "clock_forward",
	"clock_back",
	"relay_killed", "relay_paused", "relay_stopped", "broker_rejected", "broker_terminal", "ack_lost", "over_deadline",
	"late_accept",
	"dropped", "part_of_batch", "topic_down", "all_down", "quota", "poison", "contract_broken", "bad_deploy",
	"operator_paused",
	"timeout_by_size",
	"failover", "floor_in_gap", "backend_killed", "prepared_kept", "topic_rejects",
}

// String returns the fault's name.
func (f Fault) String() string { return faultNames[f] }

// Tally counts faults by kind.
type Tally [Faults]int

// Add adds another tally.
func (t *Tally) Add(o *Tally) {
	for i := range t {
		t[i] += o[i]
	}
}
