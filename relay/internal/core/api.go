package core

import (
	"context"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Routes is what the relay knows about event types.
type Routes interface {
	// Route tells where events of a type go. False: the type is not known.
	Route(eventType string) (Route, bool)
	// Types lists the known types, sorted.
	Types() []string
}

// Route is where events of a type go, and what becomes of them when they fail.
type Route struct {
	Topic string
	// Block tells that later events of the aggregate on the topic wait behind a dead one. Else they go on.
	Block bool
	// MaxAttempts ends the retries; zero: the relay's default.
	MaxAttempts int
}

// Config is what the core goes by. All of it must be set; package relay has the defaults.
type Config struct {
	Name, Version string
	Routes        Routes

	Batch       int           // events of one read
	Window      int64         // numbers of one read: what is settled there is walked over
	HeldPage    int           // held rows of one look: there may be millions
	MaxInFlight int           // events in memory and not settled
	MaxBytes    int           // bytes in memory and not settled
	Concurrency int           // publishes at a time
	MinPoll     time.Duration // the shortest pause after a read that found nothing
	Poll        time.Duration // the longest
	FencePeriod time.Duration
	HeldPeriod  time.Duration // between looks at what operators made due
	SweepPeriod time.Duration
	Lease       time.Duration
	Deadline    time.Duration // of one publish
	Margin      time.Duration // kept free at the end of a lease
	Drain       time.Duration // how long a stop waits for what is in flight
	MinStay     time.Duration // of a lane, before it moves to a relay that knows more of its types
	MaxAttempts int
	BaseDelay   time.Duration
	MaxDelay    time.Duration
	// Depth is how many publishes of one aggregate to a topic may be in flight: 1, unless its broker keeps the order of
	// pipelined messages.
	Depth func(topic string) int
	// UnknownTypeMaxAge is how old an event of an unknown type may get; negative: dead at once.
	UnknownTypeMaxAge time.Duration

	// NoWatermark reads every lane from its floor, for the control run of a benchmark.
	NoWatermark bool

	// Random decides everything that is left to chance, tokens included.
	Random func() uint64
	// Observe is told every step; nil: nobody.
	Observe func(Step)
	// Arrived is told the topic of every event that was read; nil: nobody. One whose lane changed hands arrives again, and
	// one that goes back to the database and is read again does not.
	Arrived func(topic string)
}

// Op names a call of the store, for limits, faults and logs.
type Op string

// The calls.
const (
	OpHeartbeat  Op = "heartbeat"
	OpEndExpired Op = "end_expired"
	OpAcquire    Op = "acquire"
	OpRelease    Op = "release"
	OpFence      Op = "fence"
	OpRead       Op = "read"
	OpBarrier    Op = "barrier"
	OpUnpark     Op = "unpark"
	OpHeldKeys   Op = "held_keys"
	OpDueKeys    Op = "due_keys"
	OpHeldRows   Op = "held_rows"
	OpOldParked  Op = "old_parked"
	OpSettle     Op = "settle"
	OpNote       Op = "mark"
	OpSweep      Op = "sweep"
	OpSaveRoutes Op = "save_topics"

	OpTakeRequests   Op = "take_requests"
	OpSettleRequests Op = "settle_requests"
)

// Call is a call of the store that the core wants made. Run makes it, on any goroutine, and returns what
// the core must be told: the shell calls that on the core's own goroutine, with the time at which it does.
type Call struct {
	Op  Op
	Run func(ctx context.Context, store Store) (tell func(now time.Duration))
}

// Publish is an event that the core wants published. Whoever publishes answers with [Core.Published],
// exactly once.
type Publish struct {
	Event *Event
	Topic string
	// Redelivered tells that the broker may have been sent the event before.
	Redelivered bool
	// Request is the number of the request that a copy is sent for; zero: it is the event itself.
	Request int64
	// Attempt is 1 for the first try, and one more than the attempts that were counted against the event.
	Attempt int
	// First tells that nothing of its aggregate and topic is in flight. What is not first must not be sent when
	// one before it was not.
	First bool
	// DecidedAt is when the core decided on it. Who gets to it much later must not begin: the lane may be lost.
	DecidedAt time.Duration

	row     *row
	request *request // of a copy; it has no row
}

// Actions is what the core wants done now.
type Actions struct {
	Calls   []Call
	Publish []*Publish // those of one aggregate in order
	// Wake is when the core wants to act again even if nothing happens.
	Wake time.Duration
	// Stopped tells that a stop is complete, or has taken too long.
	Stopped bool
}

// Do says what a step is about.
type Do string

// The steps.
const (
	DidAcquire       Do = "acquire"        // took Lane with Token; the relay's lease counts from Since
	DidRenew         Do = "renew"          // prolonged it; the lease counts from Since
	DidRelease       Do = "release"        // gave it back
	DidLose          Do = "lose"           // found out, or must assume, that the lane is no longer its own
	DidPublish       Do = "publish"        // hands the event to the broker
	DidAck           Do = "ack"            // the broker acknowledged it
	DidRefuse        Do = "publish_failed" // the publish ended with an error of Class
	DidSettle        Do = "settle"         // wrote State with Result
	DidSettleRequest Do = "settle_request" // wrote how Request Ended, with Result
	DidCharge        Do = "charge"         // decided to count an attempt against the event, because of Class
	DidPause         Do = "pause"          // paused the route to Topic, because of Detail
	DidResume        Do = "resume"         // the route to Topic is healthy again
	DidForget        Do = "forget"         // nothing goes to Topic any more, to which only copies went
	DidFail          Do = "fail"           // a call of the store failed: Op, Detail
	DidAlarm         Do = "alarm"          // something that people should look at: Detail
)

// Result is what became of a settle.
type Result string

// The results.
const (
	Applied   Result = "applied"
	Stale     Result = "stale"     // the lane was lost; nothing changed
	Unchanged Result = "unchanged" // the row was no longer as it had been read, and is as it was
	Uncertain Result = "uncertain" // the answer never came
)

// Step is something that the core did or learned.
type Step struct {
	Op          Op
	Do          Do
	Lane        int16
	Token       outbox.ID
	Since       time.Duration // when the lease's time began, by the clock that is given to the core
	Event       outbox.ID
	Type        string
	Aggregate   Aggregate
	Topic       string
	Attempt     int
	Redelivered bool // of a pause or resume: only copies go to Topic
	Class       Class
	// Contract tells that the event broke its contract, with a Class of Terminal: nothing was sent.
	Contract bool
	State    State
	Result   Result
	Detail   string
	// Request is that of a copy, and Ended how it ended; zero: the step is about the event itself.
	Request int64
	Ended   RequestState
	// Took is how long a publish took, and how long it was from the decision about an event until it was settled.
	Took time.Duration
	// Lag is how long after its created_at a published event was settled, by the database's clock; zero: not known.
	Lag time.Duration
}

// Counts is what a relay has done.
type Counts struct {
	Published, Retried, Parked, Waited, Dead int64
	Redelivered                              int64
	StaleSettles                             int64
	Lanes, InFlight                          int
	// WatermarkLag is how many numbers were drawn above the watermark: below it nothing can appear any more.
	WatermarkLag int64
	// OldestWriter is for how long the oldest open transaction that has emitted was seen to be open.
	OldestWriter time.Duration
}
