package outboxgorm

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
)

// Event is a row of outbox_events, all but its lane, which is for relays and for statements that write. Its fields
// are in the order of the columns, pointers where a column may be null. GORM looks events up by their id.
type Event struct {
	// Seq is the order of events. A lower number may become visible after a higher one.
	Seq int64 `gorm:"column:seq;type:bigint;not null;<-:false"`
	// ID is the event's id, a UUIDv7 in its hyphenated form.
	ID string `gorm:"column:id;type:uuid;primaryKey;not null;<-:false"`
	// CreatedAt is when the transaction that emitted the event began. Nothing is ordered by it.
	CreatedAt time.Time `gorm:"column:created_at;type:timestamptz;not null;default:now();autoCreateTime:false;<-:false"`
	// PublishedAt is when the broker acknowledged the event.
	PublishedAt *time.Time `gorm:"column:published_at;type:timestamptz;<-:false"`
	// AttemptCount is how many attempts to publish failed because of the event itself.
	AttemptCount int32 `gorm:"column:attempt_count;type:integer;not null;default:0;<-:false"`
	// State says where the event stands. While it is Held, a [HeldEvent] of the same Seq says how.
	State State `gorm:"column:state;type:smallint;not null;default:0;<-:false;comment:0 ready, 1 held: outbox_held says how, 5 dead, 6 published, 7 discarded"`
	// Namespace groups the events of one module.
	Namespace string `gorm:"column:namespace;type:text;not null;default:'default';<-:false"`
	// EventType names the event's contract.
	EventType string `gorm:"column:event_type;type:text;not null;<-:false"`
	// AggregateType is the type of the thing that the event is about.
	AggregateType string `gorm:"column:aggregate_type;type:text;not null;<-:false"`
	// AggregateID names the aggregate within its type.
	AggregateID string `gorm:"column:aggregate_id;type:text;not null;<-:false"`
	// TenantID says whose event it is.
	TenantID *string `gorm:"column:tenant_id;type:text;<-:false"`
	// DedupeKey is the key under which the event was emitted.
	DedupeKey *string `gorm:"column:dedupe_key;type:text;<-:false"`
	// PayloadJSON is the envelope, byte for byte as it is published.
	PayloadJSON JSON `gorm:"column:payload_json;type:json;not null;<-:false"`
	// Headers are the message's own attributes, a JSON object of texts.
	Headers *JSON `gorm:"column:headers;type:json;<-:false"`
	// LastError is what the last failed attempt was told.
	LastError *string `gorm:"column:last_error;type:text;<-:false"`
}

// TableName tells GORM the table.
func (Event) TableName() string { return "outbox_events" }

// State is where an event stands on its way, as far as its own row tells.
type State int16

// The states of an event.
const (
	Ready     = State(state.Ready)     // not yet published
	Held      = State(1)               // not published, and a HeldEvent says why
	Dead      = State(state.Dead)      // given up, and its aggregate goes on without it
	Published = State(state.Published) // acknowledged by the broker
	Discarded = State(state.Discarded) // closed by an operator
)
