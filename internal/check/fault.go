package check

import "cmp"

// FaultKind names what was done to the run. Other kinds than these may be used: they are counted, and
// explain nothing.
type FaultKind string

// Faults after which an event may arrive twice.
const (
	Kill         FaultKind = "kill"          // a relay died without warning
	Pause        FaultKind = "pause"         // a relay stood still for longer than its lease
	LeaseLost    FaultKind = "lease_lost"    // a lane was taken away; of one relay: all of its lanes
	AckLost      FaultKind = "ack_lost"      // the broker took the message, the relay got another answer
	LateAccept   FaultKind = "late_accept"   // the broker took the message after the relay had given up
	BrokerCopied FaultKind = "broker_copied" // the broker itself made a copy
	SettleFailed FaultKind = "settle_failed" // the database rejected or lost a settle
	DatabaseDown FaultKind = "database_down" // restart, failover, cut or terminated connections
	// Failover is the promotion of a standby that was behind: what the last commits wrote is as it was before. One
	// with an ID says that the event's row was among that.
	Failover FaultKind = "failover"
)

// Faults of a topic: they are nobody's fault but the broker's, so no event may be charged for them.
const (
	BrokerDown   FaultKind = "broker_down"
	TopicMissing FaultKind = "topic_missing"
	AuthRevoked  FaultKind = "auth_revoked"
	Quota        FaultKind = "quota"
)

// Faults between relays and the broker that lose answers. A publish that was on its way then may have been
// accepted, whatever answer its relay got; see answersLost.
const (
	BrokerRestart  FaultKind = "broker_restart"  // the broker was killed and came back; down from From to To
	BrokerCut      FaultKind = "broker_cut"      // connections to the broker were cut
	BrokerStalled  FaultKind = "broker_stalled"  // connections to the broker carried nothing, and stayed open
	AnswersDropped FaultKind = "answers_dropped" // the broker took messages and did not answer
)

// Failpoint is a crash point at which a process ended itself; Fault.Point names it.
const Failpoint FaultKind = "failpoint"

// duplicates tells whether an event may arrive twice because of such a fault. A broker that goes down may
// have taken a message that it never acknowledged.
func (k FaultKind) duplicates() bool {
	switch k {
	case Kill, Pause, LeaseLost, AckLost, LateAccept, BrokerCopied, SettleFailed, DatabaseDown, Failover,
		BrokerDown, Failpoint:
		return true
	default:
		return false
	}
}

// stops tells whether a relay under such a fault may leave a publish without a settle.
func (k FaultKind) stops() bool { return k == Kill || k == Pause || k == Failpoint }

// ofTopic tells whether the fault is the topic's.
func (k FaultKind) ofTopic() bool {
	return k == BrokerDown || k == BrokerRestart || k == TopicMissing || k == AuthRevoked || k == Quota
}

// answersLost is the time in which the fault may have kept the answer to a publish from its relay. A broker that is
// down takes nothing: of a restart and a cut, only the moment counts.
func (f *Fault) answersLost() (from, to int64, loses bool) {
	from = cmp.Or(f.Since, f.From)
	switch f.Kind {
	case BrokerRestart, BrokerCut:
		return from, f.From, true
	case BrokerStalled, AnswersDropped:
		return from, f.To, true
	default:
		return 0, 0, false
	}
}

// Fault is one fault that was injected. Relay, Topic and ID are its scope; all empty means everything.
type Fault struct {
	Kind FaultKind `json:"kind"`
	// Relay must name one process: one that starts again has another name.
	Relay string `json:"relay,omitempty"`
	Topic string `json:"topic,omitempty"`
	ID    ID     `json:"id,omitzero"`
	Point string `json:"point,omitempty"`
	// Detail is for people.
	Detail string `json:"detail,omitempty"`
	// From and To say when, by the database's clock: From after the fault had set in, To before it was
	// lifted. To 0: it was never lifted.
	From int64 `json:"from,omitempty"`
	To   int64 `json:"to,omitempty"`
	// Since is when the fault can have begun to work, where that is before it certainly had. Defaults to From.
	Since int64 `json:"since,omitempty"`
	// First and Last say the same in arrivals: First is the Index that the next delivery had before the
	// fault set in, Last the one after it was lifted. 0: not known.
	First uint64 `json:"first,omitempty"`
	Last  uint64 `json:"last,omitempty"`
}
