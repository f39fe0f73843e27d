package outboxgorm

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/state"
)

// HeldEvent is a row of outbox_held: what keeps an event, whose state is [Held], from being published.
type HeldEvent struct {
	// Seq is the event's.
	Seq int64 `gorm:"column:seq;type:bigint;primaryKey;autoIncrement:false;not null;<-:false"`
	// Version is another one after every change.
	Version int64 `gorm:"column:version;type:bigint;not null;<-:false"`
	// Due is when a failed event is tried again.
	Due *time.Time `gorm:"column:due;type:timestamptz;<-:false"`
	// Since is since when it is held in this way.
	Since time.Time `gorm:"column:since;type:timestamptz;not null;default:clock_timestamp();<-:false"`
	// Lane is the event's.
	Lane int16 `gorm:"column:lane;type:smallint;primaryKey;autoIncrement:false;not null;<-:false"`
	// Kind is how it is held.
	Kind HeldKind `gorm:"column:kind;type:smallint;not null;<-:false;comment:1 retrying, 2 parked, 3 waiting behind a held event, 4 dead and blocking its aggregate"`
	// Namespace is the event's.
	Namespace string `gorm:"column:namespace;type:text;not null;<-:false"`
	// EventType is the event's.
	EventType string `gorm:"column:event_type;type:text;not null;<-:false"`
	// AggregateType is the event's.
	AggregateType string `gorm:"column:aggregate_type;type:text;not null;<-:false"`
	// AggregateID is the event's.
	AggregateID string `gorm:"column:aggregate_id;type:text;not null;<-:false"`
}

// TableName tells GORM the table.
func (HeldEvent) TableName() string { return "outbox_held" }

// HeldKind is how an event is held.
type HeldKind int16

// The ways in which an event is held.
const (
	Retrying     = HeldKind(state.Retrying)     // failed, and due again later
	Parked       = HeldKind(state.Parked)       // no relay can publish its type yet
	Waiting      = HeldKind(state.Waiting)      // behind a held event of its aggregate
	DeadBlocking = HeldKind(state.DeadBlocking) // given up, and its aggregate waits behind it
)
