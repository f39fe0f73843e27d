package backfill

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// row is a row of the query, and the event that it makes.
type row struct {
	key   string
	event outbox.Event
	data  json.RawMessage
	wrong error // why it makes none
}

// list is the columns of an event, with what the query does not have as null.
func (p Plan) list() string {
	var list []string
	for _, name := range Columns[1:] {
		text := "NULL::text"
		if slices.Contains(p.columns, name) {
			text = "q." + name + "::text"
			if name == "occurred_at" {
				text = "q.occurred_at::timestamptz::text"
			}
		}
		list = append(list, text)
	}
	return strings.Join(list, ", ")
}

// next reads the rows behind a key. It asks for one more than it returns: rows with the same key, which came after the
// plan, may stand on both sides of the limit.
func (b *Backfill) next(ctx context.Context, tx pgx.Tx, plan Plan, after *string, limit int) ([]row, error) {
	answer, err := tx.Query(ctx, b.statement("rows", plan, after, limit+1), b.args(after)...)
	if err != nil {
		return nil, &QueryError{err}
	}
	var rows []row
	var key string
	var onward, own bool
	var eventType, aggregateType, aggregateID, data, tenant, headers, dedupe, occurred *string
	_, err = pgx.ForEachRow(answer, []any{
		&key, &onward, &own, &eventType, &aggregateType, &aggregateID, &data, &tenant, &headers, &dedupe, &occurred,
	}, func() error {
		if err := keyFits(key, onward, own); err != nil {
			return err
		}
		r := row{key: key, data: json.RawMessage(or(data, string(b.config.Data)))}
		aggregate := or(aggregateType, b.config.AggregateType)
		contract := b.contract(or(eventType, b.config.EventType), aggregate)
		r.event = contract.New(or(aggregateID, key), r.data)
		r.event.TenantID = or(tenant, b.config.TenantID)
		r.event.DedupeKey = or(dedupe, madeKey(r.event.TenantID, aggregate, key))
		var wrong error
		r.event.OccurredAt, wrong = timeOf(occurred)
		r.event.Headers, r.wrong = b.headers(headers)
		r.wrong = cmp.Or(wrong, r.wrong)
		rows = append(rows, r)
		return nil
	})
	if input := (*InputError)(nil); errors.As(err, &input) {
		return nil, input
	}
	if err != nil {
		return nil, &QueryError{err}
	}
	return rows[:min(limit, len(rows))], nil
}

// keyFits fails on a key with which rows would be read for ever, passed over, or taken for others.
func keyFits(key string, onward, own bool) error {
	switch {
	case !onward:
		return &InputError{fmt.Errorf("the key %.80q is another one, or not above the one before, when it is read from its "+
			"text: give the query another key, for instance one with a cast to text", key)}
	case !own:
		return &InputError{fmt.Errorf("the key %.80q is there twice by now: each row needs a key of its own", key)}
	default:
		return nil
	}
}

// timeOf is a time as the database writes it, with ISO and UTC.
func timeOf(text *string) (time.Time, error) {
	if text == nil {
		return time.Time{}, nil
	}
	at, err := time.Parse("2006-01-02 15:04:05-07", *text)
	if err != nil {
		return time.Time{}, fmt.Errorf("occurred_at: %.40q is no time of the years 1 to 9999", *text)
	}
	return at, nil
}

func or(value *string, other string) string {
	if value == nil {
		return other
	}
	return *value
}

// madeKey is the dedupe key of a row: a tenant owns its keys, and two tables may have the same ones.
func madeKey(tenant, aggregateType, key string) string {
	if tenant != "" {
		tenant += "/"
	}
	return tenant + "backfill/" + aggregateType + "/" + key
}

// contract is that of a type. What a row has become since it was emitted makes no other event of it.
func (b *Backfill) contract(eventType, aggregateType string) *outbox.ContractFor[json.RawMessage] {
	name := [2]string{eventType, aggregateType}
	if b.contracts[name] == nil {
		b.contracts[name] = outbox.Define[json.RawMessage](outbox.Contract{
			Type: eventType, Aggregate: aggregateType, Namespace: b.config.Namespace, FirstWins: true,
			Topic: "-", MaxBytes: outbox.MaxContractBytes, // the relay's registry has the topic
		})
	}
	return b.contracts[name]
}

// headers are those of a row, with those of all.
func (b *Backfill) headers(text *string) (map[string]string, error) {
	headers := maps.Clone(b.config.Headers)
	if text == nil {
		return headers, nil
	}
	var own map[string]string
	if err := json.Unmarshal([]byte(*text), &own); err != nil {
		return nil, errors.New("headers: it must be a JSON object of texts")
	}
	if headers == nil {
		return own, nil
	}
	maps.Copy(headers, own)
	return headers, nil
}

func (r row) sample() Sample {
	contract := r.event.Contract()
	return Sample{
		Key: r.key, Type: contract.Type, AggregateType: contract.Aggregate, AggregateID: r.event.AggregateID,
		Tenant: r.event.TenantID, DedupeKey: r.event.DedupeKey, Headers: r.event.Headers, Data: r.data,
	}
}

// check says which row is wrong, by its key.
func (b *Backfill) check(rows []row) error {
	for _, r := range rows {
		err := r.wrong
		if err == nil {
			_, err = outbox.Statement(b.config.Schema, r.event)
		}
		if err != nil {
			return &InputError{fmt.Errorf("the row with the key %.80q: %s", r.key,
				strings.TrimPrefix(strings.ReplaceAll(err.Error(), "outbox: event 0", "the event"), "outbox: "))}
		}
	}
	return nil
}

// emit writes the events that are not there, in a transaction, and tells how many it wrote.
func (b *Backfill) emit(ctx context.Context, rows []row) (created int, err error) {
	tx, err := b.db.BeginTx(ctx, pgx.TxOptions{})
	if err != nil {
		return 0, fmt.Errorf("backfill: begin: %w", err)
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	events, err := b.missing(ctx, tx, rows)
	if err != nil || len(events) == 0 {
		return 0, err
	}
	receipts, err := outbox.Emit(ctx, outbox.InSchema(tx, b.config.Schema), events...)
	if err != nil {
		return 0, fmt.Errorf("backfill: %w", err)
	}
	if err := tx.Commit(ctx); err != nil {
		return 0, fmt.Errorf("backfill: commit: %w", err)
	}
	for _, receipt := range receipts {
		if receipt.Created {
			created++
		}
	}
	return created, nil
}

// missing are the events that are not there yet. Whoever emits one meanwhile is met by its dedupe key.
func (b *Backfill) missing(ctx context.Context, tx pgx.Tx, rows []row) ([]outbox.Event, error) {
	var names [4][]string
	for _, r := range rows {
		contract := r.event.Contract()
		for i, text := range []string{contract.Namespace, contract.Type, r.event.TenantID, r.event.DedupeKey} {
			names[i] = append(names[i], text)
		}
	}
	answer, err := tx.Query(ctx, b.statement("there", Plan{}, nil, 0), names[0], names[1], names[2], names[3])
	if err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	there, err := pgx.CollectRows(answer, pgx.RowTo[int])
	if err != nil {
		return nil, fmt.Errorf("backfill: %w", err)
	}
	isThere := make([]bool, len(rows))
	for _, place := range there {
		isThere[place] = true
	}
	var events []outbox.Event
	for i, r := range rows {
		if !isThere[i] {
			events = append(events, r.event)
		}
	}
	return events, nil
}
