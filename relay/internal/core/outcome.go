package core

import "time"

// Class says whose fault a failed publish is. Everything that follows from a failure follows from this.
type Class uint8

// The classes.
const (
	// Acknowledged: the broker has the event.
	Acknowledged Class = iota
	// Rejected: the broker refused this event for now. Charged, retried, dead at the attempts' end.
	Rejected
	// Terminal: this event can never be published. Dead at once; charged where the broker said so.
	Terminal
	// RouteFault: the broker is down, the topic missing, the credentials revoked, the quota spent. Nobody
	// is charged and nothing dies.
	RouteFault
	// Unknown: the broker may have the event. Sent again under the same id; charged only when the route
	// carried other events meanwhile.
	Unknown
	// NotSent: the publish never began, because the relay stops or may not hold the lane any more.
	NotSent
)

// words are the classes as publishers, logs and tables call them.
var words = [...]string{
	Acknowledged: "published", Rejected: "rejected", Terminal: "terminal", RouteFault: "topic_fault",
	Unknown: "unknown", NotSent: "not_sent",
}

// String is the class in the word that everybody may see; empty: there is no such class.
func (c Class) String() string {
	if int(c) >= len(words) {
		return ""
	}
	return words[c]
}

// Outcome is what a publish came to.
type Outcome struct {
	Class Class
	// Reason is the dead letter's error_reason, for Terminal.
	Reason string
	// Detail is the error as people read it: sanitised, bounded, without payloads or secrets.
	Detail string
	// RetryAfter is how long the broker asks to be left alone, for RouteFault; zero: it did not say.
	RetryAfter time.Duration
	// Contract tells that the event broke its contract, for Terminal: nothing was sent, so no attempt is counted.
	// When most events of a type do, it is parked instead.
	Contract bool
	// OfRow tells that it broke a rule for all events, whatever its contract says: nobody's deployment is to blame.
	OfRow bool
}
