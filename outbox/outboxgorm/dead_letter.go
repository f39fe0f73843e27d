package outboxgorm

import "time"

// DeadLetter is a row of outbox_dlq: a copy of an event that was given up, and why. An event that was
// redriven and died again has two.
type DeadLetter struct {
	// ID tells dead letters apart.
	ID int64 `gorm:"column:id;type:bigint;primaryKey;autoIncrement:false;not null;<-:false"`
	// EventSeq is the event's place in the order of events.
	EventSeq int64 `gorm:"column:event_seq;type:bigint;not null;<-:false"`
	// EventID is the event's id, a UUIDv7 in its hyphenated form.
	EventID string `gorm:"column:event_id;type:uuid;not null;<-:false"`
	// CreatedAt is the event's.
	CreatedAt time.Time `gorm:"column:created_at;type:timestamptz;not null;autoCreateTime:false;<-:false"`
	// FailedAt is when it was given up.
	FailedAt time.Time `gorm:"column:failed_at;type:timestamptz;not null;default:clock_timestamp();<-:false"`
	// Attempts is how many were made.
	Attempts int32 `gorm:"column:attempts;type:integer;not null;<-:false"`
	// Blocking says whether later events of its aggregate waited behind it when it died.
	Blocking bool `gorm:"column:blocking;type:boolean;not null;<-:false"`
	// Namespace is the event's.
	Namespace string `gorm:"column:namespace;type:text;not null;<-:false"`
	// TenantID is the event's.
	TenantID *string `gorm:"column:tenant_id;type:text;<-:false"`
	// DedupeKey is the event's.
	DedupeKey *string `gorm:"column:dedupe_key;type:text;<-:false"`
	// EventType is the event's.
	EventType string `gorm:"column:event_type;type:text;not null;<-:false"`
	// AggregateType is the event's.
	AggregateType string `gorm:"column:aggregate_type;type:text;not null;<-:false"`
	// AggregateID is the event's.
	AggregateID string `gorm:"column:aggregate_id;type:text;not null;<-:false"`
	// Topic is where it was to be published; nil when the type was unknown.
	Topic *string `gorm:"column:topic;type:text;<-:false"`
	// ErrorReason is one word, for instance max_attempts.
	ErrorReason string `gorm:"column:error_reason;type:text;not null;<-:false"`
	// ErrorDetail is a sentence.
	ErrorDetail string `gorm:"column:error_detail;type:text;not null;default:'';<-:false"`
	// PayloadJSON is the envelope, byte for byte as it would have been published.
	PayloadJSON JSON `gorm:"column:payload_json;type:json;not null;<-:false"`
	// Headers are the message's own attributes.
	Headers *JSON `gorm:"column:headers;type:json;<-:false"`
}

// TableName tells GORM the table.
func (DeadLetter) TableName() string { return "outbox_dlq" }
