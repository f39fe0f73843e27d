// Package outboxtest asserts, in an application's own tests, which events it emitted.
//
// The assertions look through the test's transaction, so nothing has to be committed: begin, call the
// code under test, assert, roll back. They take the same transactions as the outbox package.
package outboxtest

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/posthaste-dev/posthaste/outbox"
)

// TB is what the assertions need of a *testing.T.
type TB interface {
	Helper()
	Fatalf(format string, args ...any)
}

// An Emitted event, as it is stored.
type Emitted[P any] struct {
	ID        outbox.ID
	TenantID  string
	DedupeKey string
	Headers   map[string]string
	Envelope  outbox.Envelope
	Data      P
}

// RequireEmitted fails the test unless exactly one event of this contract was emitted for the
// aggregate, and returns it with its typed payload.
func RequireEmitted[P any, R outbox.Row](ctx context.Context, t TB, tx outbox.PgxTx[R], contract *outbox.ContractFor[P],
	aggregateID string,
) Emitted[P] {
	t.Helper()
	return requireOne(t, pgxLook[R](ctx, tx), contract, aggregateID)
}

// RequireEmittedSQL is [RequireEmitted] in a transaction of database/sql.
func RequireEmittedSQL[P any](ctx context.Context, t TB, tx outbox.SQLTx, contract *outbox.ContractFor[P],
	aggregateID string,
) Emitted[P] {
	t.Helper()
	return requireOne(t, sqlLook(ctx, tx), contract, aggregateID)
}

// RequireNotEmitted fails the test if an event of this contract was emitted for the aggregate.
func RequireNotEmitted[P any, R outbox.Row](ctx context.Context, t TB, tx outbox.PgxTx[R],
	contract *outbox.ContractFor[P], aggregateID string,
) {
	t.Helper()
	requireNone(t, pgxLook[R](ctx, tx), contract, aggregateID)
}

// RequireNotEmittedSQL is [RequireNotEmitted] in a transaction of database/sql.
func RequireNotEmittedSQL[P any](ctx context.Context, t TB, tx outbox.SQLTx, contract *outbox.ContractFor[P],
	aggregateID string,
) {
	t.Helper()
	requireNone(t, sqlLook(ctx, tx), contract, aggregateID)
}

// All returns every event of this contract that was emitted for the aggregate, oldest first.
func All[P any, R outbox.Row](ctx context.Context, t TB, tx outbox.PgxTx[R], contract *outbox.ContractFor[P],
	aggregateID string,
) []Emitted[P] {
	t.Helper()
	return all(t, pgxLook[R](ctx, tx), contract, aggregateID)
}

// AllSQL is [All] in a transaction of database/sql.
func AllSQL[P any](ctx context.Context, t TB, tx outbox.SQLTx, contract *outbox.ContractFor[P],
	aggregateID string,
) []Emitted[P] {
	t.Helper()
	return all(t, sqlLook(ctx, tx), contract, aggregateID)
}

// look runs one of our queries in the test's transaction and returns its one text.
type look func(query string, args ...any) (string, error)

func pgxLook[R outbox.Row](ctx context.Context, tx outbox.PgxTx[R]) look {
	return func(query string, args ...any) (text string, err error) {
		err = tx.QueryRow(ctx, inSchemaOf(tx, query), args...).Scan(&text)
		return text, err
	}
}

func sqlLook(ctx context.Context, tx outbox.SQLTx) look {
	return func(query string, args ...any) (text string, err error) {
		err = tx.QueryRowContext(ctx, inSchemaOf(tx, query), args...).Scan(&text)
		return text, err
	}
}

func inSchemaOf(tx any, query string) string {
	schema := outbox.DefaultSchema
	if named, ok := tx.(interface{ OutboxSchema() string }); ok {
		schema = named.OutboxSchema()
	}
	return strings.ReplaceAll(query, "{schema}", `"`+strings.ReplaceAll(schema, `"`, `""`)+`"`)
}

func requireOne[P any](t TB, look look, contract *outbox.ContractFor[P], aggregateID string) Emitted[P] {
	t.Helper()
	emitted := all(t, look, contract, aggregateID)
	if len(emitted) != 1 {
		t.Fatalf("want one %s of %s %q, got %d; the transaction sees: %s",
			contract.Contract().Type, contract.Contract().Aggregate, aggregateID, len(emitted), newest(look))
		return Emitted[P]{}
	}
	return emitted[0]
}

func requireNone[P any](t TB, look look, contract *outbox.ContractFor[P], aggregateID string) {
	t.Helper()
	if emitted := all(t, look, contract, aggregateID); len(emitted) != 0 {
		t.Fatalf("want no %s of %s %q, got %d; the transaction sees: %s",
			contract.Contract().Type, contract.Contract().Aggregate, aggregateID, len(emitted), newest(look))
	}
}

// The payload travels as a string inside the JSON, so that its bytes arrive as they are stored.
const allQuery = `
SELECT coalesce(json_agg(json_build_object('id', e.id, 'tenant', e.tenant_id, 'key', e.dedupe_key,
                                           'headers', e.headers, 'payload', e.payload_json::text) 
                                           ORDER BY e.seq), '[]')::text
  FROM {schema}.outbox_events e
 WHERE e.namespace = $1::text AND e.event_type = $2::text AND e.aggregate_type = $3::text AND e.aggregate_id = $4::text`

func all[P any](t TB, look look, contract *outbox.ContractFor[P], aggregateID string) []Emitted[P] {
	t.Helper()
	is := contract.Contract()
	text, err := look(allQuery, is.Namespace, is.Type, is.Aggregate, aggregateID)
	if err != nil {
		t.Fatalf("look for %s: %v", is.Type, err)
		return nil
	}
	var rows []struct {
		ID      outbox.ID         `json:"id"`
		Tenant  string            `json:"tenant"`
		Key     string            `json:"key"`
		Headers map[string]string `json:"headers"`
		Payload string            `json:"payload"`
	}
	if err := json.Unmarshal([]byte(text), &rows); err != nil {
		t.Fatalf("look for %s: %v", is.Type, err)
		return nil
	}
	emitted := make([]Emitted[P], len(rows))
	for i, row := range rows {
		data, envelope, err := contract.Decode([]byte(row.Payload))
		if err != nil {
			t.Fatalf("event %s does not keep its contract: %v", row.ID, err)
			return nil
		}
		emitted[i] = Emitted[P]{
			ID: row.ID, TenantID: row.Tenant, DedupeKey: row.Key, Headers: row.Headers, Envelope: envelope, Data: data,
		}
	}
	return emitted
}

// An id begins with its time, and has an index.
const newestQuery = `
SELECT coalesce(string_agg(n.event_type || ' of ' || n.aggregate_type || ' ' || n.aggregate_id, ', ' ORDER BY n.seq), 
       '')
  FROM (SELECT * FROM {schema}.outbox_events e ORDER BY e.id DESC LIMIT 10) n`

// newest tells a person what is there instead.
func newest(look look) string {
	text, err := look(newestQuery)
	if err != nil {
		return fmt.Sprintf("(not readable: %v)", err)
	}
	if text == "" {
		return "no events at all"
	}
	return text
}
