package core

import (
	"context"
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
)

// State is where an event stands: how it is held by outbox_held, or else the state of outbox_events.
type State = state.State

// The states, as the core calls them.
const (
	Ready        = state.Ready
	Retrying     = state.Retrying
	Parked       = state.Parked
	Waiting      = state.Waiting
	DeadBlocking = state.DeadBlocking
	Dead         = state.Dead
	Published    = state.Published
	Discarded    = state.Discarded
)

// Aggregate names the thing that an event is about. Events of one aggregate are in one lane.
type Aggregate = outbox.Aggregate

// Event is a row of outbox_events, as a reader returns it.
type Event struct {
	Lane      int16
	State     State
	Attempts  int32 // failures that were the event's own fault
	Seq       int64
	ID        outbox.ID
	Type      string
	Aggregate Aggregate
	Tenant    string // empty: none
	DedupeKey string // empty: none
	CreatedAt time.Time
	// DueIn is how long a retrying row has to wait still, by the database's clock; zero or less is due.
	DueIn time.Duration
	// Version is that of a held row, another at every change; 0: the event was read as ready.
	Version int64
	// Stray tells that the event is in another lane than its aggregate.
	Stray bool
	// Payload and Headers are the bytes as they were written. Nil for held rows that are not to be
	// published now (parked, dead).
	Payload []byte
	Headers []byte // nil: none
}

// mostName is how many bytes the names of an event may have in all: an index of what is held has room for no more. Half
// as many are within the rules.
const mostName = 2000

// Unholdable tells whether no row of the event can be written to what is held. Whoever wrote it brought a lane, so that
// the database did not look at it.
func (e *Event) Unholdable() bool {
	return len(e.Aggregate.Namespace)+len(e.Aggregate.Type)+len(e.Aggregate.ID)+len(e.Type) > mostName
}

// Bytes is what the event costs in memory, roughly.
func (e *Event) Bytes() int { return len(e.Payload) + len(e.Headers) + 256 }

// Owner is one start of a relay, and the token that proves it: what everything must show that touches its lanes. A
// relay that was ended comes back under another id.
type Owner struct {
	Relay, Token outbox.ID
}

// Tenure is one acquisition of a lane, with a token of its own: what gives the lane back.
type Tenure struct {
	Lane  int16
	Token outbox.ID
}

// Store is the database as the core sees it. Every call is one round trip or one transaction; an error
// means that the outcome is not known, and everything but Acquire may then be sent again. An Acquire with
// an unknown outcome is undone by Release with its token.
//
// Answers to what reads say which incarnation of which server they are of. Behind a pooler or a name that moves,
// another server answers without any call having failed.
type Store interface { //nolint:interfacebloat // the whole database, and every user of it needs all
	// Heartbeat says that the relay is alive and how far it is, and answers who else is there.
	Heartbeat(ctx context.Context, beat Heartbeat) (HeartbeatAnswer, error)
	// EndExpired ends relays that have not beaten for a lease, and frees their lanes: at most so many.
	EndExpired(ctx context.Context, end EndExpired) ([]outbox.ID, error)
	// Acquire takes up to Max of the listed lanes that are free.
	Acquire(ctx context.Context, take Acquire) (AcquireAnswer, error)
	// Release gives lanes back; those whose token does not match any more are left alone.
	Release(ctx context.Context, give Release) error

	// Fence lists who may still make events appear below the sequence's value. See [Fence].
	Fence(ctx context.Context) (Fence, error)
	// Read reads ready rows of lanes, in order, above each lane's bound.
	Read(ctx context.Context, read Read) (ReadAnswer, error)
	// Barrier returns when everything is durable that reads have seen on this incarnation of the server. It
	// fails when the server is another one by now: then nobody knows. Empty: nobody asks.
	Barrier(ctx context.Context, incarnation string) error

	// Unpark looks at so many parked rows, and sets those of the given types to retrying, due now, in lanes that are
	// still held.
	Unpark(ctx context.Context, unpark Unpark) (UnparkAnswer, error)
	// HeldKeys lists what is held in the lanes: the first held row of each aggregate and event type, so many at most.
	HeldKeys(ctx context.Context, held HeldKeys) (KeysAnswer, error)
	// DueKeys lists held rows that are retrying and due, at most limit per lane, of types not excluded: those first
	// that became due last, because operators have just made them so. What comes behind a full page is asked for with
	// the place at which it ended.
	DueKeys(ctx context.Context, due DueKeys) (KeysAnswer, error)
	// HeldRows reads held rows of aggregates, in order: what is asked for each, at most limit each.
	HeldRows(ctx context.Context, held HeldRows) (RowsAnswer, error)
	// OldParked looks at so many rows that were parked so long ago, the oldest first in each lane, and lists those of
	// types not excluded, without payloads.
	OldParked(ctx context.Context, old OldParked) (ParkedAnswer, error)

	// Settle writes what became of events, if the lanes are still held; else it changes nothing.
	Settle(ctx context.Context, settle *Settle) (SettleAnswer, error)
	// Note writes down which event of the lane is about to be sent alone. An event that owners have died with stays noted
	// until it is settled, or until as often an owner has died without it or outlived it. False: the lane is lost.
	Note(ctx context.Context, note Note) (bool, error)
	// TakeRequests takes open requests of lanes that are due, those of each lane in the order of their events, and counts
	// that somebody has taken them.
	TakeRequests(ctx context.Context, take TakeRequests) (RequestsAnswer, error)
	// SettleRequests writes down how requests ended, if the lanes are still held; else it changes nothing. What is not
	// open any more stays as it is.
	SettleRequests(ctx context.Context, settle *SettleRequests) (SettleAnswer, error)
	// Sweep lists ready rows at or below each floor and above its Above, at most limit. There must be none.
	Sweep(ctx context.Context, sweep Sweep) (SweepAnswer, error)
	// SaveRoutes writes down how all of this relay's routes stand.
	SaveRoutes(ctx context.Context, relay outbox.ID, routes []RouteStatus) error
}

// Heartbeat is what a relay says about itself.
type Heartbeat struct {
	Owner
	// Register makes the owner; nil: it is there.
	Register *Registration
	// Number is that of the beat, which is another one at every sending; zero: the relay only looks.
	Number int64
	Lease  time.Duration
	Lanes  []Progress // all that it holds
	// Incarnation is the server that the floors are about. On another one they are not written: a standby that
	// missed the last settles would have events below them. Empty: nobody asks.
	Incarnation string
	// From and Below are beats of this relay that nobody needs any more: from that number on, and below that one.
	From, Below int64
	// Met are the relays whose types are known already.
	Met []outbox.ID
}

// Registration is what people and other relays are told about a relay.
type Registration struct {
	Name, Version string
	Types, Topics []string // what it can publish, and where that goes
}

// Progress is how far the owner of a lane is. The floor only ever rises.
type Progress struct {
	Tenure
	Floor int64
	Swept int64    // every number at or below it was looked at once more, below the floor; it only ever rises
	Calm  bool     // what killed owners before is behind: the lane's crash count begins anew
	Needs []string // event types held in the lane that not every relay knows
}

// HeartbeatAnswer is who is there.
type HeartbeatAnswer struct {
	Ended  bool    // the owner is no more, and all its lanes are lost
	Held   []int16 // the lanes that are the owner's
	Relays []Peer  // that were not ended, this one among them
	Lanes  []LaneView
	Pauses []Pause // that stand, by scope and name
	Limits []Limit // that stand, by topic
	// Requested tells that a request is open, of whatever lane.
	Requested bool
	// Incarnation is the server that answered, as in a fence.
	Incarnation string
}

// Scope says what a pause is about.
type Scope string

// The scopes.
const (
	ScopeAll   Scope = "all"
	ScopeTopic Scope = "topic"
	ScopeType  Scope = "type"
)

// Pause is an operator's order to publish nothing of a scope.
type Pause struct {
	Scope  Scope
	Name   string // of the topic or the event type; empty: all
	Actor  string
	Reason string
	Since  time.Time
}

// Limit is an operator's order that all relays together begin so many publishes to a topic a second, and no more.
type Limit struct {
	Topic  string
	Rate   float64
	Actor  string
	Reason string
	Since  time.Time
}

// Peer is a relay of the fleet.
type Peer struct {
	ID         outbox.ID
	Expired    bool     // it has not beaten for a lease: it may be ended
	KnownTypes []string // nil: it is one of Met
}

// LaneView is a lane as everybody sees it.
type LaneView struct {
	Lane  int16
	Owner outbox.ID // zero: nobody, and so it may be taken
	Token outbox.ID // of its acquisition
	Needs []string
}

// EndExpired ends relays that seem dead.
type EndExpired struct {
	Relay outbox.ID // that asks: it is not ended
	Max   int
	// Away tells that this relay has been out of touch itself: who seems to have died may have been as well, and
	// no death is counted.
	Away bool
}

// Acquire asks for lanes, under a token made for this acquisition.
type Acquire struct {
	Owner
	Tenure outbox.ID // its token
	Lanes  []int16
	Max    int
}

// AcquireAnswer is the lanes that were taken, and the incarnation of the server on which.
type AcquireAnswer struct {
	Lanes       []Acquired
	Incarnation string
}

// Acquired is a lane that was taken.
type Acquired struct {
	Lane         int16
	Floor, Swept int64
	// Crashed tells that the owner before did not release the lane: it was ended.
	Crashed bool
	// CrashCount is how often in a row owners died before the lane was calm, this time included.
	CrashCount int
	// NotedEvent is the event that was about to be sent alone, zero for none, and NotedCount in how many
	// crashes it was that one, this time included. Only crashes of owners that noted it themselves count.
	NotedEvent outbox.ID
	NotedCount int
}

// Release gives lanes back, and everything that was acquired with one of Tokens. What an owner that is no more had was
// given back before.
type Release struct {
	Owner
	Lanes       []Progress
	Tokens      []outbox.ID
	Incarnation string // as in Heartbeat
	// End ends the owner, with whatever lanes it has.
	End bool
}

// Fence is what was found in the order: the sequence's value first, then the transactions that hold a
// lock on the sequence, then a barrier that makes the value durable. Every number at or below Last belongs
// to a transaction that has ended, or to one of Writers.
type Fence struct {
	Last        int64
	Standby     bool   // the server is in recovery: Last runs ahead and must not be used
	Incarnation string // changes when the server was restarted or is another one
	Writers     []Writer
}

// Writer is an open transaction that has drawn a number, or is about to.
type Writer struct {
	VXID string // its virtual transaction id
	XID  uint64 // 64 bit, epoch included; 0: it has none yet
}

// OpenWriter is a writer whose numbers are all above Low.
type OpenWriter struct {
	XID uint64
	Low int64
}

// Read asks for ready rows. Lanes are read from max(W, min(C, low of the writers that are gone)): the
// statement itself decides, in its own snapshot, which of Writers have ended, and which lanes are still
// held: of others it reads nothing. So a relay that has lost a lane without knowing it cannot mistake what the
// new owner did for the whole.
type Read struct {
	Owner   // zero: nobody asks who holds the lanes
	Lanes   []LaneRead
	Writers []OpenWriter
	Exclude []string // event types to leave out
	// MaxBytes ends the answer early, after the event with which it is reached.
	MaxBytes int
}

// LaneRead bounds the read of one lane.
type LaneRead struct {
	Lane  int16
	W, C  int64
	Limit int
	// Window is how many numbers above its bound are looked at; 0: all. What is settled there is walked over.
	Window int64
}

// Seen is what a look was at: the incarnation of the server that showed it, as in a fence, and the lanes that it did
// not show because they are not the owner's any more.
type Seen struct {
	Incarnation string
	Lost        []int16
}

// ReadAnswer is what a read found: events by lane in the order asked for, and within a lane by number.
type ReadAnswer struct {
	Seen
	Events []Event
	Gone   []uint64 // xids of Read.Writers that had ended
	// Stopped tells that MaxBytes was reached: the last event's lane is cut there, and lanes behind it
	// were not read.
	Stopped bool
}

// What is held may be millions of rows, so it is looked at in pages: the lanes in the order asked for, until as many
// rows were looked at as the limit says; 0: all. A page that is full ends in the lane of its last row, and lanes behind
// that one were not looked at. The next page begins there.

// LaneFrom asks for the held rows of one lane that come behind a place.
type LaneFrom struct {
	Lane  int16
	After HeldPlace
}

// HeldPlace is where a held row stands among those of its lane and kind. The zero value is before the first.
type HeldPlace struct {
	At  time.Time // when it became due, or since when it is what it is
	Seq int64
}

// FromStart asks for all of each lane.
func FromStart(lanes ...int16) []LaneFrom {
	from := make([]LaneFrom, len(lanes))
	for i, lane := range lanes {
		from[i].Lane = lane
	}
	return from
}

// Unpark releases parked rows of types that the new owner knows.
type Unpark struct {
	Owner
	Lanes []LaneFrom // each of them once
	Types []string
	Limit int
}

// UnparkAnswer is how far an unpark has come.
type UnparkAnswer struct {
	Seen
	Page
}

// Page is how many rows were looked at, and the last of them.
type Page struct {
	Looked int
	Lane   int16
	End    HeldPlace
}

// What follows looks at held rows. As in a read, of lanes that are not the owner's nothing is shown; the zero owner is
// not asked.

// HeldKeys asks what is held in lanes.
type HeldKeys struct {
	Owner
	Lanes []LaneLines // each of them once
	Limit int         // of keys
}

// LaneLines asks for the lines of one lane that come behind a place; the zero value is before the first.
type LaneLines struct {
	Lane  int16
	After HeldLine
}

// HeldLine is where a line stands among those of its lane.
type HeldLine struct {
	Aggregate Aggregate
	EventType string
}

// AllLines asks for all of each lane.
func AllLines(lanes ...int16) []LaneLines {
	all := make([]LaneLines, len(lanes))
	for i, lane := range lanes {
		all[i].Lane = lane
	}
	return all
}

// HeldRows asks for held rows, at most Limit for each ask.
type HeldRows struct {
	Owner
	Asks  []HeldAsk
	Limit int
}

// Sweep asks for ready rows below floors, at most Limit.
type Sweep struct {
	Owner
	Floors []Floor
	Limit  int
}

// OldParked asks for what was parked long ago, of types not excluded: what is parked for another reason than its type
// stays so, and may be any number.
type OldParked struct {
	Owner
	Lanes   []LaneFrom // each of them once
	Age     time.Duration
	Exclude []string // event types
	Limit   int
}

// ParkedAnswer is rows that were parked long ago, and how far the look has come.
type ParkedAnswer struct {
	Seen
	Page
	Events []Event
}

// DueKeys asks for retries that are due.
type DueKeys struct {
	Owner
	Lanes   []LaneFrom // each of them once
	Exclude []string   // event types
	Limit   int        // of each lane
}

// HeldKey is the first held row of an aggregate and event type.
type HeldKey struct {
	Lane      int16
	Aggregate Aggregate
	EventType string
	State     State
	DueIn     time.Duration
	Place     HeldPlace // of a due retry, if DueKeys was asked
}

// KeysAnswer is what a look at held rows found.
type KeysAnswer struct {
	Seen
	Keys []HeldKey
}

// RowsAnswer is held rows.
type RowsAnswer struct {
	Seen
	Events []Event
}

// SweepAnswer is what a sweep found.
type SweepAnswer struct {
	Seen
	Found []Floor
}

// Note is about the event of a lane that is sent alone.
type Note struct {
	Owner    Owner
	Tenure   Tenure
	Event    outbox.ID // that is about to be sent; zero: the one that was noted is not being sent any more
	Outlived bool      // that one was sent, and the relay lives
}

// HeldAsk asks for the held rows of one aggregate that are of some types.
type HeldAsk struct {
	Lane      int16
	Aggregate Aggregate
	Types     []string // each of them once
}

// Settle is what became of events. All of it is applied, or nothing when one of the lanes is lost.
// Applied twice it is applied once: what is ready changes once, and what is held has another version after every
// change. Only what is published asks for no version: acknowledged is acknowledged.
type Settle struct {
	Owner
	Lanes     []int16
	Published []Found // from ready, retrying, waiting
	Retry     []Retry // from ready, retrying, waiting, as it was read
	Wait      []Found // from ready
	Park      []Park  // from ready, retrying, waiting, as it was read
	Dead      []Death // from any state in which it is not published, dead or discarded, as it was read
	// ClearNotes are the lanes whose noted event is among these.
	ClearNotes []int16
}

// Empty tells that there is nothing to settle.
func (s *Settle) Empty() bool { return s.Size() == 0 }

// Size is the number of events.
func (s *Settle) Size() int {
	return len(s.Published) + len(s.Retry) + len(s.Wait) + len(s.Park) + len(s.Dead)
}

// Retry sets an event to retrying. Attempts is the new count, so that a second settle adds nothing.
type Retry struct {
	Found
	Attempts int32
	Delay    time.Duration
	Error    string
	Tried    Tried
}

// Tried is the publish that failed, for the event's history. Its zero value: none was made.
type Tried struct {
	Class Class
	Topic string
}

// Found is which row is meant, and how it was read.
type Found struct {
	ID      outbox.ID
	Lane    int16
	Seq     int64
	Version int64 // 0: as ready
}

// Found is how the event was read.
func (e *Event) Found() Found { return Found{ID: e.ID, Lane: e.Lane, Seq: e.Seq, Version: e.Version} }

// Park sets an event aside, from now on.
type Park struct {
	Found
	Error string
}

// Death ends an event, and writes its dead letter in the same transaction.
type Death struct {
	Found
	Blocking bool
	Attempts int32
	Topic    string
	Reason   string // error_reason of outbox_dlq
	Detail   string
	Tried    Tried
}

// SettleAnswer tells whether the settle was applied, and if not, which of its lanes are still held.
type SettleAnswer struct {
	Applied bool
	Held    []int16
	// Unchanged are the retries, parkings and deaths of an applied settle whose rows were not as they had been read: an
	// operator was faster, or the settle was applied before.
	Unchanged []outbox.ID
	At        time.Time // when the settle began, by the database's clock; zero: it did not say
}

// Floor is a number in a lane, or the numbers up to it.
type Floor struct {
	Lane  int16
	Seq   int64
	Above int64 // in a sweep: only numbers above this
}

// RouteStatus is how a route stands, for people.
type RouteStatus struct {
	Topic      string
	Paused     bool
	ByOperator bool   // else because publishing fails
	Error      string // sanitised; empty when not paused
}
