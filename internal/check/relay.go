package check

// Do is what a relay did.
type Do string

// The steps of a relay. Those with an event are Publish, Ack, PublishFailed, Settle and Charge.
const (
	Acquire       Do = "acquire"        // took Lane with Token at At, until Until
	Renew         Do = "renew"          // prolonged it until Until
	Release       Do = "release"        // gave it back at At, settled; At 0 if the answer never came
	Lose          Do = "lose"           // found out that the lane is no longer its own
	Publish       Do = "publish"        // is about to hand the event to the broker
	Ack           Do = "ack"            // the broker acknowledged it
	PublishFailed Do = "publish_failed" // the publish, or the check before it, ended with an error of Class
	Settle        Do = "settle"         // wrote state To with Result
	Charge        Do = "charge"         // counted an attempt against the event, because of a failure of Class
)

// Class is whose fault a failure is.
type Class string

// The classes of failures. Only those of the event that was sent may be charged, and Unknown while the topic works.
const (
	OfEvent   Class = "event"         // the broker refused this message for now
	Terminal  Class = "terminal"      // it will never be accepted
	Broken    Class = "contract"      // it breaks its contract, so it was not sent
	OfTopic   Class = "topic"         // the broker, the topic, the credentials or the quota
	InDoubt   Class = "unknown"       // it may have been accepted
	Crash     Class = "crash"         // the relay died
	Shutdown  Class = "shutdown"      // the relay was to stop
	LostLease Class = "lost_lease"    // the lane is another's
	NotKnown  Class = "not_yet_known" // the type is not in this relay's registry
)

// chargeable tells whether a failure of this class may ever count as an attempt.
func (c Class) chargeable() bool { return c == OfEvent || c == Terminal || c == InDoubt }

// Result is how a settle ended.
type Result string

// The results of a settle.
const (
	Applied   Result = "applied"
	Stale     Result = "stale"     // the token no longer holds the lane; nothing changed
	Unchanged Result = "unchanged" // the row was no longer as it had been read, and is as it was
	NotDone   Result = "failed"    // the statement failed; nothing changed
	Uncertain Result = "uncertain" // the answer never came
)

// Step is one line of a relay's history. It is written before what it announces (Publish) or after what it
// reports (all others), and PublishFailed before the settle that follows from it is sent.
type Step struct {
	Do    Do     `json:"do"`
	Relay string `json:"relay"`
	Token string `json:"token,omitempty"`
	Lane  int    `json:"lane"`
	// At is when, by the database's clock; 0 if nobody knows.
	At    int64 `json:"at,omitempty"`
	Until int64 `json:"until,omitempty"`
	// Next is the Index that the next delivery will have; 0 if nobody knows.
	Next    uint64 `json:"next,omitempty"`
	ID      ID     `json:"id,omitzero"`
	Request int64  `json:"request,omitempty"`
	Topic   string `json:"topic,omitempty"` // of a copy that does not go where its event went
	Class   Class  `json:"class,omitempty"`
	Result  Result `json:"result,omitempty"`
	To      State  `json:"to,omitempty"`
}

// hasEvent tells whether the step is about one event.
func (s *Step) hasEvent() bool {
	return s.Do == Publish || s.Do == Ack || s.Do == PublishFailed || s.Do == Settle || s.Do == Charge
}

// valid tells whether the words are ones that the checker knows.
func (s *Step) valid() bool {
	switch s.Do {
	case Acquire, Renew, Release, Lose, Publish, Ack:
		return true
	case PublishFailed, Charge:
		switch s.Class {
		case OfEvent, Terminal, Broken, OfTopic, InDoubt, Crash, Shutdown, LostLease, NotKnown:
			return true
		}
	case Settle:
		switch s.Result {
		case Applied, Stale, NotDone, Uncertain:
			return true
		case Unchanged: // nobody undoes the others
			return s.To == Retrying || s.To == Parked || s.To == DeadBlocking || s.To == Dead
		}
	}
	return false
}
