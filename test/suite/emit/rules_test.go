package emit

import (
	"errors"
	"fmt"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// What breaks a rule is told as PostgreSQL tells a constraint, whoever notices: drivers and applications go by the
// code, the table and the constraint.
func TestBrokenRulesAreToldAsConstraints(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		const envelope = `{"eventId":"01980a3c-0000-7000-8000-000000000001"}`
		for what, statement := range map[string]string{
			"INSERT": `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
				VALUES ('01980a3c-0000-7000-8000-000000000001', 'a b', 'order', '1', '` + envelope + `')`,
			"outbox_emit":            `SELECT {schema}.outbox_emit('a b', 'order', '1', '{}')`,
			"outbox_emit with a key": `SELECT {schema}.outbox_emit('a b', 'order', '1', '{}', dedupe_key => 'k')`,
		} {
			_, err := p.pool.Exec(t.Context(), p.SQL(statement))
			broken, ok := errors.AsType[*pgconn.PgError](err)
			if !ok {
				t.Errorf("%s: got %v", what, err)
				continue
			}
			const constraint = "outbox_events_event_type"
			if broken.Code != "23514" || broken.SchemaName != p.Schema || broken.TableName != "outbox_events" ||
				broken.ConstraintName != constraint ||
				broken.Message != `new row for relation "outbox_events" violates check constraint "`+constraint+`"` {
				t.Errorf("%s: %s %s of %s.%s: %s", what, broken.Code, broken.ConstraintName, broken.SchemaName,
					broken.TableName, broken.Message)
			}
		}
	})
}

// The lane is made of names: of one that is missing the name's own column is told, and not the lane's.
func TestMissingNamesAreToldByTheirColumns(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, column := range []string{"namespace", "event_type", "aggregate_type", "aggregate_id"} {
			event := corpus.OrderCreated(`{}`)
			event.ID = outbox.NewID()
			row := columns(event)
			row["namespace"] = "default"
			row[column] = nil
			for what, statement := range map[string]string{
				"INSERT": `INSERT INTO {schema}.outbox_events
					(id, namespace, event_type, aggregate_type, aggregate_id, payload_json)
					VALUES ($5::text::uuid, $1::text, $2::text, $3::text, $4::text, $6::text::json)`,
				"outbox_emit": `SELECT {schema}.outbox_emit(namespace => $1::text, event_type => $2::text,
					aggregate_type => $3::text, aggregate_id => $4::text, event_id => $5::text::uuid, data => $6::text::json)`,
				"outbox_emit with a key": `SELECT {schema}.outbox_emit(namespace => $1::text, event_type => $2::text,
					aggregate_type => $3::text, aggregate_id => $4::text, event_id => $5::text::uuid, data => $6::text::json,
					dedupe_key => 'k')`,
			} {
				_, err := p.pool.Exec(t.Context(), p.SQL(statement), row["namespace"], row["event_type"], row["aggregate_type"],
					row["aggregate_id"], row["id"], row["payload_json"])
				missing, ok := errors.AsType[*pgconn.PgError](err)
				if !ok || missing.Code != "23502" || missing.ColumnName != column {
					t.Errorf("%s without %s: got %v", what, column, err)
				}
			}
		}
		p.wantRows(t, 0, 0, 0)
	})
}

// Every statement that writes events of ours brings the lane that the relay will look for the aggregate in.
func TestEmitBringsTheLane(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		plain, other := corpus.OrderCreated(`{}`), corpus.OrderCreated(`{}`)
		other.AggregateID, other.Contract.Namespace = "order-2", "billing"
		for what, all := range map[string][]corpus.Given{
			"one":          {plain},
			"many":         {plain, other},
			"one deduped":  {plain.WithKey("1")},
			"many deduped": {plain.WithKey("2"), other},
		} {
			for name, emit := range map[string]corpus.Emitter{"library": corpus.Emit, "outbox_emit": corpus.EmitSQL} {
				tx := p.begin(t)
				receipts, err := emit(t.Context(), tx, p.Schema, all)
				if err != nil {
					t.Fatal(err)
				}
				for _, receipt := range receipts {
					if err := p.keepsTheRules(t.Context(), tx, receipt.ID.String()); err != nil {
						t.Errorf("%s, %s: %v", name, what, err)
					}
				}
				_ = tx.Rollback(t.Context())
			}
		}
	})
}

// Whoever writes by hand may leave the lane out.
func TestLaneIsFilledIn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, lane := range []string{"DEFAULT", "NULL"} {
			event := corpus.OrderCreated(`{}`)
			event.ID = outbox.NewID()
			if _, err := p.pool.Exec(t.Context(), p.SQL(fmt.Sprintf(`INSERT INTO {schema}.outbox_events
				(lane, id, event_type, aggregate_type, aggregate_id, payload_json)
				VALUES (%s, $1::text::uuid, $2::text, $3::text, $4::text, $5::text::json)`, lane)), event.ID.String(),
				event.Contract.Type, event.Contract.Aggregate, event.AggregateID,
				event.Envelope(event.ID.String())); err != nil {
				t.Errorf("lane %s: %v", lane, err)
				continue
			}
			if err := p.keepsTheRules(t.Context(), p.pool, event.ID.String()); err != nil {
				t.Errorf("lane %s: %v", lane, err)
			}
		}
	})
}
