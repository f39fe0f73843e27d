package check

import (
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/internal/state"
)

// State is where an event stands, with the numbers of internal/state: outbox_events has those of what is not held,
// outbox_held those of how an event is held.
type State uint8

// The states of an event, and Absent for a row that is not there.
const (
	Ready        = State(state.Ready)
	Retrying     = State(state.Retrying)
	Parked       = State(state.Parked)
	Waiting      = State(state.Waiting)
	DeadBlocking = State(state.DeadBlocking)
	Dead         = State(state.Dead)
	Published    = State(state.Published)
	Discarded    = State(state.Discarded)
	Absent       = Discarded + 1
)

// stateNames are the states in a history: the usual words, made one each.
var stateNames = func() (names []string) {
	for _, s := range state.All() {
		names = append(names, strings.ReplaceAll(s.String(), " and ", "_"))
	}
	return append(names, "absent")
}()

// String returns the state's name.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state %d", uint8(s))
}

// MarshalText writes the name.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads the name.
func (s *State) UnmarshalText(text []byte) error {
	for i, name := range stateNames {
		if name == string(text) {
			*s = State(i)
			return nil
		}
	}
	return fmt.Errorf("check: there is no state of that name, only %v", stateNames)
}

// isHeld is what the column state of outbox_events says of an event that has a row in outbox_held.
const isHeld = 1

// StateOf is where an event stands, from the column state of its row and the kind of its row in outbox_held; 0: it has
// none there. What the column cannot say is no state: the checker calls it malformed. Of a held event that has no such
// row nobody knows how it is held; it is not finished, and Held records tell on it.
func StateOf(column, kind int16) State {
	switch {
	case column == isHeld && kind > 0:
		return State(min(kind, int16(Absent)))
	case column == isHeld:
		return Retrying
	case column < 0 || State(min(column, int16(Absent))).held():
		return Absent
	default:
		return State(min(column, int16(Absent)))
	}
}

// held tells whether an event in this state has a row in outbox_held.
func (s State) held() bool { return s >= Retrying && s <= DeadBlocking }

// open tells whether a relay still has something to do with the event.
func (s State) open() bool { return s <= Waiting }

// dead tells whether it will not be tried again by itself.
func (s State) dead() bool { return s == Dead || s == DeadBlocking }

// Row is one row of outbox_events when the run was over.
type Row struct {
	ID        ID     `json:"id"`
	Seq       int64  `json:"seq"`
	State     State  `json:"state"`
	Type      string `json:"type,omitempty"`
	Attempts  int    `json:"attempts,omitempty"`
	Published bool   `json:"published,omitempty"` // published_at is set
}

// Held is one row of outbox_held.
type Held struct {
	ID   ID    `json:"id,omitzero"` // of the event with this lane and number; zero: there is none
	Lane int   `json:"lane"`
	Seq  int64 `json:"seq"`
	Kind State `json:"kind"`
	Due  bool  `json:"due,omitempty"` // due is set
	// Alien: its names are not those of the event.
	Alien bool `json:"alien,omitempty"`
}

// Letter is one row of outbox_dlq.
type Letter struct {
	ID       ID     `json:"id"` // the event's
	Reason   string `json:"reason"`
	Attempts int    `json:"attempts,omitempty"`
	Blocking bool   `json:"blocking,omitempty"`
	Payload  Sum    `json:"payload"`
	Headers  Sum    `json:"headers,omitzero"`
	// Next is the Index of the next delivery when it was written; 0 if nobody knows.
	Next uint64 `json:"next,omitempty"`
	// Undone: a failover took it back. Until then later events did not wait.
	Undone bool `json:"undone,omitempty"`
}

// Verb is what an operator did.
type Verb string

// The operators' verbs.
const (
	Redrive   Verb = "redrive"
	Skip      Verb = "skip"
	Free      Verb = "release" // of a parked type or a blocked aggregate
	Discard   Verb = "discard"
	Redeliver Verb = "redeliver"
	Reissue   Verb = "reissue"
)

// Action is one row of outbox_actions. An event that a reissue makes is a Tx of its own.
type Action struct {
	ID    ID     `json:"id"` // the event's
	Verb  Verb   `json:"verb"`
	Actor string `json:"actor"`
	// Next is the Index of the next delivery when it was written; 0 if nobody knows.
	Next uint64 `json:"next,omitempty"`
	// Undone: a failover took it back.
	Undone bool `json:"undone,omitempty"`
}

// RequestEnd is how a request ended.
type RequestEnd string

// The ends of a request.
const (
	RequestOpen      RequestEnd = ""
	RequestDelivered RequestEnd = "delivered"
	RequestCanceled  RequestEnd = "canceled"
	RequestFailed    RequestEnd = "failed"
)

// Request is one row of outbox_requests.
type Request struct {
	Request int64      `json:"request"`
	ID      ID         `json:"id"` // the event's
	Action  ID         `json:"action,omitzero"`
	Topic   string     `json:"topic,omitempty"` // empty: the event's
	End     RequestEnd `json:"end,omitempty"`
	// Canceled is the Index that the next delivery had when whoever canceled it was told so; 0 if nobody knows.
	Canceled uint64 `json:"canceled,omitempty"`
	// TakenBack tells that a failover took back what was written down about it.
	TakenBack bool `json:"taken_back,omitempty"`
}

// Change is one change of a row's state, as a trigger or a simulated store saw it.
type Change struct {
	ID   ID    `json:"id"`
	From State `json:"from"`
	To   State `json:"to"`
}

// End closes a history and says what can be expected of it.
type End struct {
	// Drained: faults were healed, and the relays had the time to finish.
	Drained bool `json:"drained,omitempty"`
	// Dumped: the rows, letters, actions and requests are complete.
	Dumped bool `json:"dumped,omitempty"`
	// Held: the rows of outbox_held are complete as well. Not every store has such a table.
	Held bool `json:"held,omitempty"`
	// Retention ran: published and discarded rows may be missing.
	Retention bool `json:"retention,omitempty"`
	// Effects: consumers have finished, and their effects are complete.
	Effects bool `json:"effects,omitempty"`
	// UnknownTypes are types that no live relay knew at the end.
	UnknownTypes []string `json:"unknown_types,omitempty"`
	// Interleaved: the changes of rows were recorded between what relays did, as they happened.
	Interleaved bool `json:"interleaved,omitempty"`
	// Pipelined are topics whose publisher keeps the order of several messages in flight.
	Pipelined []string `json:"pipelined,omitempty"`
	// Doubtful are topics whose publisher says of an outcome that nobody knows that it is the topic's: Pub/Sub's does.
	Doubtful []string `json:"doubtful,omitempty"`
}
