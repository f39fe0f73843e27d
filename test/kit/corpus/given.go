package corpus

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Occurred is when everything happens here, so that a stored payload can be foretold to the byte.
var Occurred = time.Date(2026, 3, 1, 12, 30, 15, 123456000, time.UTC)

// Given is an event as a test describes it. Unlike an outbox.Event it can be read, so the same one can
// go through the library, through outbox_emit and through a faulty copy of either.
type Given struct {
	Contract    outbox.Contract
	Payload     any // a json.RawMessage is the data itself
	ID          outbox.ID
	AggregateID string
	Tenant      string
	Key         string
	At          time.Time
	Actor       *outbox.Actor
	Headers     map[string]string
	Unmade      bool // an Event that no contract made
}

// OrderCreated is a good event, as long as its data is.
func OrderCreated(data string) Given {
	return Given{
		Contract:    outbox.Contract{Type: "order_created", Aggregate: "order", Topic: "orders"},
		Payload:     json.RawMessage(data),
		AggregateID: "order-1",
		At:          Occurred,
	}
}

// WithKey gives it a dedupe key.
func (g Given) WithKey(key string) Given {
	g.Key = key
	return g
}

// Of gives it a tenant.
func (g Given) Of(tenant string) Given {
	g.Tenant = tenant
	return g
}

// Event is what the library is given.
func (g Given) Event() outbox.Event {
	var event outbox.Event
	if !g.Unmade {
		event = outbox.Define[any](g.Contract).New(g.AggregateID, g.Payload)
	}
	event.ID, event.TenantID, event.DedupeKey = g.ID, g.Tenant, g.Key
	event.OccurredAt, event.Actor, event.Headers = g.At, g.Actor, g.Headers
	return event
}

// Events is what the library is given for one call.
func Events(all []Given) []outbox.Event {
	made := make([]outbox.Event, len(all))
	for i, g := range all {
		made[i] = g.Event()
	}
	return made
}

// Data is what the payload must be stored as, found without the library.
func (g Given) Data() []byte {
	if raw, ok := g.Payload.(json.RawMessage); ok {
		return raw
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(g.Payload); err != nil {
		return nil
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}

// Envelope is the stored payload that this event must have, found without the library.
func (g Given) Envelope(id string) string {
	version := max(g.Contract.Version, 1)
	text := fmt.Sprintf(`{"version":%d,"eventId":"%s","occurredAt":"%s"`, version, id,
		g.At.UTC().Format("2006-01-02T15:04:05.000000Z"))
	if g.Actor != nil {
		actor, _ := json.Marshal(g.Actor)
		text += `,"actor":` + string(actor)
	}
	return text + `,"data":` + string(g.Data()) + `}`
}

// Emitter is the emit side: the library's, or one with a bug in it.
type Emitter func(ctx context.Context, tx pgx.Tx, schema string, all []Given) ([]outbox.Receipt, error)

// Emit is the emit side of Go.
func Emit(ctx context.Context, tx pgx.Tx, schema string, all []Given) ([]outbox.Receipt, error) {
	return outbox.Emit(ctx, outbox.InSchema(tx, schema), Events(all)...)
}

// EmitSQL is the emit side of other languages, one call per event.
func EmitSQL(ctx context.Context, tx pgx.Tx, schema string, all []Given) ([]outbox.Receipt, error) {
	receipts := make([]outbox.Receipt, len(all))
	for i, g := range all {
		var id string
		err := tx.QueryRow(ctx, `SELECT id::text, created FROM "`+schema+`".outbox_emit($1::text, $2::text, $3::text,
			$4::text::json, version => $5::text::integer, namespace => $6::text, tenant_id => $7::text,
			dedupe_key => $8::text, actor => $9::text::json, headers => $10::text::json,
			occurred_at => $11::text::timestamptz, event_id => $12::text::uuid)`,
			g.Contract.Type, g.Contract.Aggregate, g.AggregateID, string(g.Data()),
			fmt.Sprint(Or(g.Contract.Version, 1)), Or(g.Contract.Namespace, outbox.DefaultNamespace), orNull(g.Tenant),
			orNull(g.Key),
			JSONOrNull(g.Actor != nil, g.Actor), JSONOrNull(g.Headers != nil, g.Headers), g.Timestamp(), idOrNull(g.ID),
		).Scan(&id, &receipts[i].Created)
		if err != nil {
			return nil, fmt.Errorf("outbox_emit: %w", err)
		}
		if receipts[i].ID, err = outbox.ParseID(id); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

// Or is the value, or the other one where it is zero.
func Or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func idOrNull(id outbox.ID) any {
	if id == (outbox.ID{}) {
		return nil
	}
	return id.String()
}

// JSONOrNull is the value as JSON, or NULL where it is not given.
func JSONOrNull(given bool, value any) any {
	if !given {
		return nil
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// Timestamp writes the time in PostgreSQL's own form, which has years before the first.
func (g Given) Timestamp() any {
	at := g.At.UTC()
	switch {
	case at.IsZero():
		return nil
	case at.Year() < 1:
		return fmt.Sprintf("%04d-%s BC", 1-at.Year(), at.Format("01-02T15:04:05.000000Z"))
	}
	return fmt.Sprintf("%04d-%s", at.Year(), at.Format("01-02T15:04:05.000000Z"))
}
