package hostile

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// A row is an INSERT as another language would write it, without the library and without outbox_emit.
type row struct {
	id        string
	namespace string
	kind      string
	aggregate string
	key       string // the aggregate's id
	tenant    string
	dedupe    string
	payload   string            // {id} stands for the id
	headers   string            // JSON; empty: NULL
	lane      string            // an expression; empty: the database fills it in, and checks the event
	due       string            // an expression: the event is held until then; empty: it is ready
	more      map[string]string // other columns, as expressions
}

const goodRow = `{"version":1,"eventId":"{id}","occurredAt":"2026-03-01T12:30:15.123456Z","data":{"note":"` + secret +
	`"}}`

// always wants the same on every broker.
func always(w want) func(Broker, []event) want { return func(Broker, []event) want { return w } }

// onEach wants different things of the brokers.
func onEach(nats, pubsub want) func(Broker, []event) want {
	return func(on Broker, _ []event) want {
		if on == NATS {
			return nats
		}
		return pubsub
	}
}

// sorted goes through pairs in the same order every time.
func sorted(pairs map[string]string) iter.Seq2[string, string] {
	return func(yield func(string, string) bool) {
		for _, name := range slices.Sorted(maps.Keys(pairs)) {
			if !yield(name, pairs[name]) {
				return
			}
		}
	}
}

// rows makes inputs of one group, each with a type that its neighbours do not have.
type rows struct {
	group  string
	around bool // they bring their lane, so that nobody checks them
	inputs []input
}

func (r *rows) add(name string, wants func(Broker, []event) want, change func(*row)) {
	number := len(r.inputs)
	r.inputs = append(r.inputs, input{
		name: r.group + "/row: " + name, group: r.group, want: wants,
		write: func(ctx context.Context, tx pgx.Tx, at *outlet) ([]event, error) {
			insert := row{
				id: outbox.NewID().String(), namespace: outbox.DefaultNamespace, kind: rowType(number), aggregate: aggregateType,
				key: fmt.Sprintf("%s-%d", r.group, at.number()), payload: goodRow,
			}
			if r.around {
				insert.lane = ownLane
			}
			change(&insert)
			return insert.write(ctx, tx, at)
		},
	})
}

// ownLane is where a row belongs.
const ownLane = "{schema}.outbox_lane($2::text, $4::text, $5::text)"

// hold is behind the INSERT of a row that is held already.
const hold = ` RETURNING lane, seq, namespace, event_type, aggregate_type, aggregate_id
	) INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
	SELECT lane, seq, 1, {due}, namespace, event_type, aggregate_type, aggregate_id FROM event`

func (r row) write(ctx context.Context, tx pgx.Tx, at *outlet) ([]event, error) {
	payload := strings.ReplaceAll(r.payload, "{id}", r.id)
	columns := []string{
		"id", "namespace", "event_type", "aggregate_type", "aggregate_id", "tenant_id", "dedupe_key",
		"payload_json", "headers",
	}
	values := []string{
		"$1::text::uuid", "$2::text", "$3::text", "$4::text", "$5::text", "nullif($6::text, '')", "nullif($7::text, '')",
		"$8::text::json",
		"nullif($9::text, '')::json",
	}
	for name, expression := range r.more {
		columns, values = append(columns, name), append(values, expression)
	}
	if r.lane != "" {
		columns, values = append(columns, "lane"), append(values, r.lane)
	}
	statement := "INSERT INTO {schema}.outbox_events (" + strings.Join(columns, ", ") + ") VALUES (" +
		strings.Join(values, ", ") + ")"
	if r.due != "" {
		statement = "WITH event AS (" + statement + strings.ReplaceAll(hold, "{due}", r.due)
	}
	_, err := tx.Exec(ctx, strings.ReplaceAll(statement, "{schema}", `"`+at.schema+`"`),
		r.id, r.namespace, r.kind, r.aggregate, r.key, r.tenant, r.dedupe, payload, r.headers)
	if err != nil {
		return nil, fmt.Errorf("hostile: insert: %w", err)
	}
	id, err := outbox.ParseID(r.id)
	if err != nil {
		return nil, fmt.Errorf("hostile: %w", err)
	}
	var headers map[string]string
	_ = json.Unmarshal([]byte(r.headers), &headers) // what has no texts is not delivered
	written := newEvent(id, r.namespace, r.kind, r.aggregate, r.key, r.tenant, r.dedupe, payload, headers)
	if before, said := r.more["attempt_count"]; said {
		attempts, err := strconv.ParseInt(before, 10, 32)
		if err != nil {
			return nil, fmt.Errorf("hostile: %w", err)
		}
		written.attempts = int32(attempts)
	}
	return []event{written}, nil
}
