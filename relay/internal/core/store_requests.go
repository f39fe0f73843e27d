package core

import "github.com/posthaste-dev/posthaste/outbox"

// Request is a request to deliver a published event again.
type Request struct {
	ID     int64
	Action outbox.ID // the decision that it is a part of
	// Version changes whenever the request does.
	Version int64
	Topic   string // empty: where its type goes
	// Taken is how often it was taken since somebody last came back with it, this time included.
	Taken int
	// Attempts is how often its copy failed by its own fault.
	Attempts int32
	Event    Event
}

// TakeRequests asks for open requests that may go now.
type TakeRequests struct {
	Owner
	Lanes    []int16
	Limit    int // of each lane
	Look     int // at so many of each lane, to find those
	MaxBytes int // of all together, but for the first
	// Types are those that may go. PausedTypes go only to a topic that their request names, and nothing goes to
	// PausedTopics by name.
	Types, PausedTypes, PausedTopics []string
	// Busy are topics for which a lane has requests in memory: what else goes there comes behind those.
	Busy []LaneTopic
	// InMemory are the requests of these lanes that the relay has.
	InMemory []int64
}

// LaneTopic is a topic as a lane sees it. Types are those that go there when their request names no topic.
type LaneTopic struct {
	Lane  int16
	Topic string
	Types []string
}

// RequestsAnswer is requests that were taken, of each lane in the order of their events. What comes behind one of the
// same action and aggregate whose type may not go is not among them, and one that was taken by several who did not come
// back is taken alone.
type RequestsAnswer struct {
	Seen
	Requests []Request
	// Forgotten are requests that the database says the relay has, among those that were looked at, and that it neither
	// has in memory nor has just taken: it did not learn of the take. Nothing changed them. Their events come without
	// payload and headers.
	Forgotten []Request
	// Missing are types that may not go and that open requests are of, by lane.
	Missing []LaneType
}

// LaneType is a type in a lane.
type LaneType struct {
	Lane int16
	Type string
}

// RequestState is where a request stands.
type RequestState uint8

// The states of requests. An operator can cancel those that are open.
const (
	RequestOpen RequestState = iota
	RequestDelivered
	RequestFailed
	RequestCanceled
)

// RequestEnd is what became of a request that was taken: it was delivered or has failed, or is open again. One that is
// given back must have the version that it had when it was taken: a settle may be done late, when the request was given
// back by another one and taken again, and is being sent.
type RequestEnd struct {
	ID       int64
	Version  int64
	Lane     int16
	State    RequestState
	Attempts int32 // that failed by its own fault; of one that has ended, what it was sent in all, if that is more
	Error    string
}

// SettleRequests is what became of requests.
type SettleRequests struct {
	Owner
	Lanes []int16
	Ends  []RequestEnd
}
