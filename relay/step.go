package relay

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// StepKind says what a step is about.
type StepKind string

// The kinds of steps. About one event are StepPublish, StepAck, StepPublishFailed, StepSettle,
// StepSettleRequest and StepCharge.
const (
	StepAcquire       StepKind = "acquire"        // took Lane with Token
	StepRenew         StepKind = "renew"          // prolonged its lease
	StepRelease       StepKind = "release"        // gave it back
	StepLose          StepKind = "lose"           // found out, or must assume, that the lane is no longer its own: Detail
	StepPublish       StepKind = "publish"        // hands the event to the publisher
	StepAck           StepKind = "ack"            // the broker acknowledged it
	StepPublishFailed StepKind = "publish_failed" // the publish, or the check before it, ended with an error of Class
	StepSettle        StepKind = "settle"         // wrote State with Result
	StepSettleRequest StepKind = "settle_request" // wrote how Request ended, with Result: Detail
	StepCharge        StepKind = "charge"         // decided to count an attempt against the event, because of Class
	StepPause         StepKind = "pause"          // Topic carries nothing for now, because of Detail
	StepResume        StepKind = "resume"         // Topic is healthy again
	StepForget        StepKind = "forget"         // no copy goes to Topic any more, and nothing else did
	StepFail          StepKind = "fail"           // a call of the database failed: Call, Detail
	StepAlarm         StepKind = "alarm"          // something that people should look at: Detail
)

// SettleResult is what became of a settle.
type SettleResult string

// The results.
const (
	SettleApplied   SettleResult = "applied"
	SettleStale     SettleResult = "stale"     // the lane was lost; nothing changed
	SettleUnchanged SettleResult = "unchanged" // the row was no longer as it had been read, and is as it was
	SettleUncertain SettleResult = "uncertain" // the answer never came
)

// State is where an event stands: the column state of outbox_events.
type State int16

// The states.
const (
	StateReady        = State(state.Ready)        // not looked at yet
	StateRetrying     = State(state.Retrying)     // failed, and due again later
	StateParked       = State(state.Parked)       // of an unknown type, or of one most of which break their contract
	StateWaiting      = State(state.Waiting)      // behind a held event of its aggregate and topic
	StateDeadBlocking = State(state.DeadBlocking) // dead, and later events of the aggregate wait behind it
	StateDead         = State(state.Dead)         // dead, and later events go on
	StatePublished    = State(state.Published)    // acknowledged by the broker
	StateDiscarded    = State(state.Discarded)    // closed by an operator
)

// String is the state in the words of docs/reference/schema.md.
func (s State) String() string { return state.State(s).String() }

// Step is something that the relay did or learned. Which fields have a meaning depends on its kind.
type Step struct {
	Kind StepKind
	// Call is the call of the database that failed, one of [Calls].
	Call string
	// Lane and Token are the lane, and under which acquisition of it the relay worked.
	Lane  int16
	Token outbox.ID
	// The event, where it goes, and which attempt it is, from 1.
	Event     outbox.ID
	Type      string
	Aggregate outbox.Aggregate
	Topic     string
	Attempt   int
	// Redelivered tells that the broker may have been sent the event before; of StepPause and StepResume, that only
	// copies go to Topic.
	Redelivered bool
	// Request is the number of the request that a copy is sent for; zero: the step is about the event itself.
	Request int64
	// Class is of StepAck, StepPublishFailed and StepCharge.
	Class publish.Class
	// Contract tells that the event broke its contract, with publish.Terminal: nothing was sent.
	Contract bool
	// State and Result are of StepSettle.
	State  State
	Result SettleResult
	// Detail is the reason in words, without secrets and payloads as far as they can be told. Of a settle that made an
	// event dead it is the dead letter's error_reason.
	Detail string
	// Took is how long a publish took, and how long it was from the decision about an event until it was settled.
	Took time.Duration
	// Lag is how long after its created_at a published event was settled, by the database's clock; zero: not known.
	Lag time.Duration
}

// newStep is a step of the core as everybody may see it.
func newStep(step *core.Step) Step {
	public := Step{
		Kind:        StepKind(step.Do),
		Call:        string(step.Op),
		Lane:        step.Lane,
		Token:       step.Token,
		Event:       step.Event,
		Type:        step.Type,
		Aggregate:   step.Aggregate,
		Topic:       step.Topic,
		Attempt:     step.Attempt,
		Redelivered: step.Redelivered,
		Request:     step.Request,
		Contract:    step.Contract,
		State:       State(step.State),
		Result:      SettleResult(step.Result),
		Detail:      step.Detail,
		Took:        step.Took,
		Lag:         step.Lag,
	}
	switch public.Kind {
	case StepAck, StepPublishFailed, StepCharge:
		public.Class = publish.Class(step.Class.String())
	default: // the others have none
	}
	return public
}

// Calls are what [Step.Call] can be.
func Calls() []string {
	var calls []string
	for _, op := range []core.Op{
		core.OpHeartbeat, core.OpEndExpired, core.OpAcquire, core.OpRelease, core.OpFence, core.OpRead, core.OpBarrier,
		core.OpUnpark, core.OpHeldKeys, core.OpDueKeys, core.OpHeldRows, core.OpOldParked, core.OpSettle, core.OpNote,
		core.OpSweep, core.OpSaveRoutes, core.OpTakeRequests, core.OpSettleRequests,
	} {
		calls = append(calls, string(op))
	}
	return calls
}

// Stats is what a relay has done since it was made, and what it holds now.
type Stats struct {
	// Published, Retried, Parked, Waited and Dead are how many events were settled so.
	Published, Retried, Parked, Waited, Dead int64
	// Redelivered is how many copies of published events were delivered because somebody asked for them.
	Redelivered int64
	// StaleSettles is how many settles came too late, because their lane was lost.
	StaleSettles int64
	// Lanes is how many lanes the relay holds, InFlight how many events it has in memory and not settled.
	Lanes, InFlight int
	// WatermarkLag is how many numbers were drawn above the watermark: below it nothing can appear any more.
	WatermarkLag int64
	// OldestWriter is for how long the oldest open transaction that has emitted was seen to be open.
	OldestWriter time.Duration
}
