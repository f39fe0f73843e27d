package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
)

// line is one line of the history. A transaction has one before it commits, with its events, and one with its outcome.
type line struct {
	Key     string  `json:"key"`
	At      int64   `json:"at"` // microseconds since 1970
	Events  []event `json:"events,omitempty"`
	Outcome string  `json:"outcome,omitempty"` // ok, failed
}

// event is what must arrive.
type event struct {
	ID        string            `json:"id"`
	Type      string            `json:"type"`
	Topic     string            `json:"topic"`
	Aggregate string            `json:"aggregate"`
	Version   uint64            `json:"version"`
	Payload   string            `json:"payload"`
	Headers   map[string]string `json:"headers,omitempty"`
}

// producer writes transactions, one after the other.
type producer struct {
	task
	pool              *pgxpool.Pool
	changed, remarked *outbox.ContractFor[body]
	history           *json.Encoder
	number            int
}

// transactionTime ends a transaction that hangs. A migration may hold one up for seconds.
const transactionTime = time.Minute

// errUndone ends a transaction that was meant to fail.
var errUndone = errors.New("rolled back on purpose")

// produce writes transactions at the rate until it is told to stop.
func produce(ctx context.Context, t task) error {
	file, err := os.Create(t.History)
	if err != nil {
		return fmt.Errorf("the history: %w", err)
	}
	defer file.Close() // every line is written at once
	pool, err := pgxpool.New(ctx, t.Database)
	if err != nil {
		return fmt.Errorf("the database: %w", err)
	}
	defer pool.Close()
	p := &producer{task: t, pool: pool, history: json.NewEncoder(file)}
	p.changed, p.remarked = contracts(t.Schema)
	bell := outbox.NewDoorbell(outbox.RingPgx(pool, t.Schema))
	defer bell.Close()
	tick := time.NewTicker(time.Second / time.Duration(t.Rate))
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return nil
		case <-tick.C:
		}
		// What has begun is ended.
		transaction, cancel := context.WithTimeout(context.WithoutCancel(ctx), transactionTime)
		err := p.transact(transaction)
		cancel()
		if err != nil {
			return err
		}
		bell.Ring()
	}
}

// transact runs one transaction and writes down what became of it.
func (p *producer) transact(ctx context.Context) error {
	p.number++
	key := fmt.Sprintf("%s-%d", p.Name, p.number)
	outcome := "ok"
	err := pgx.BeginFunc(ctx, p.pool, func(tx pgx.Tx) error { return p.fill(ctx, tx, key) })
	switch {
	case errors.Is(err, errUndone), outbox.Retryable(err): // a deadlock with a migration is nobody's fault
		outcome = "failed"
	case err != nil:
		return fmt.Errorf("transaction %s: %w", key, err)
	}
	return p.write(line{Key: key, Outcome: outcome})
}

func (p *producer) write(l line) error {
	l.At = time.Now().UnixMicro()
	if err := p.history.Encode(l); err != nil {
		return fmt.Errorf("the history: %w", err)
	}
	return nil
}

// fill changes a thing and emits its events.
func (p *producer) fill(ctx context.Context, tx pgx.Tx, key string) error {
	// A twentieth of the things get a third of the events, so that some get them in quick succession.
	n := p.number * 7919 % p.Things
	if p.number%3 == 0 {
		n = p.number % max(p.Things/20, 1)
	}
	id := fmt.Sprintf("thing-%d", n)
	var version uint64
	const change = "UPDATE {schema}.torture_things SET version = version + 1 WHERE id = $1 RETURNING version"
	if err := tx.QueryRow(ctx, p.sql(change), id).Scan(&version); err != nil {
		return fmt.Errorf("change a thing: %w", err)
	}
	if p.number%16 == 5 { // events that nobody may ever see
		if err := p.emitAndUndo(ctx, tx, id, version); err != nil {
			return err
		}
	}
	kept, err := p.emit(ctx, tx, id, version)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, p.sql("INSERT INTO {schema}.torture_done (key) VALUES ($1)"), key); err != nil {
		return fmt.Errorf("the business row: %w", err)
	}
	if err := p.write(line{Key: key, Events: kept}); err != nil {
		return err
	}
	if p.number%25 == 7 {
		return errUndone
	}
	return nil
}

func (p *producer) emitAndUndo(ctx context.Context, tx pgx.Tx, id string, version uint64) error {
	inner, err := tx.Begin(ctx)
	if err != nil {
		return fmt.Errorf("a savepoint: %w", err)
	}
	if _, err := p.emit(ctx, inner, id, version); err != nil {
		return err
	}
	if err := inner.Rollback(ctx); err != nil {
		return fmt.Errorf("back to the savepoint: %w", err)
	}
	return nil
}

// emit emits in one of the ways that there are, each in its turn.
func (p *producer) emit(ctx context.Context, tx pgx.Tx, id string, version uint64) ([]event, error) {
	switch p.number % 6 {
	case 0:
		return p.byLibrary(ctx, tx, id, version, 1, false)
	case 1:
		return p.byLibrary(ctx, tx, id, version, 3, false)
	case 2:
		return p.byLibrary(ctx, tx, id, version, 1, true)
	case 3:
		return p.byLibrary(ctx, tx, id, version, 2, true)
	case 4:
		const function = `SELECT created FROM {schema}.outbox_emit($2, $3, $4, $5::text::json, headers => $6::text::json,
			occurred_at => $7::timestamptz, event_id => $1::text::uuid)`
		return p.bySQL(ctx, tx, id, version, function, false)
	default:
		const insert = `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json,
				headers)
			SELECT $1::text::uuid, $2::text, $3::text, $4::text, $5::text::json, $6::text::json
			 WHERE $7::timestamptz IS NOT NULL RETURNING true`
		return p.bySQL(ctx, tx, id, version, insert, true)
	}
}

// byLibrary emits so many events with one call; keyed ones twice, and the second time nothing may be written.
func (p *producer) byLibrary(ctx context.Context, tx pgx.Tx, id string, version uint64, count int,
	keyed bool,
) (kept []event, err error) {
	events := make([]outbox.Event, count)
	for i := range events {
		contract := p.contract(i)
		events[i] = contract.New(id, body{version, p.Name})
		events[i].ID, events[i].OccurredAt = outbox.NewID(), time.Now().Truncate(time.Microsecond)
		if i == 0 {
			events[i].Headers = map[string]string{"trace": fmt.Sprintf("%016x", p.number), "lang": "en"}
		}
		if keyed { // the id: an event that was undone has had the other numbers
			events[i].DedupeKey = events[i].ID.String()
		}
		one, err := p.known(contract.Contract(), events[i].ID, events[i].OccurredAt, id, version)
		if err != nil {
			return nil, err
		}
		one.Headers = events[i].Headers
		kept = append(kept, one)
	}
	for try := range 2 {
		receipts, err := outbox.Emit(ctx, outbox.InSchema(tx, p.Schema), events...)
		if err != nil {
			return nil, fmt.Errorf("emit: %w", err)
		}
		for _, receipt := range receipts {
			if receipt.Created != (try == 0) {
				return nil, fmt.Errorf("emit number %d of an event answered created=%t", try+1, receipt.Created)
			}
		}
		if !keyed {
			break
		}
	}
	return kept, nil
}

// bySQL emits one event with a statement of its own: as a call with the data, or as a row with the whole payload.
func (p *producer) bySQL(ctx context.Context, tx pgx.Tx, id string, version uint64, statement string,
	whole bool,
) ([]event, error) {
	contract := p.contract(p.number / 6).Contract()
	eventID, at := outbox.NewID(), time.Now().Truncate(time.Microsecond)
	one, err := p.known(contract, eventID, at, id, version)
	if err != nil {
		return nil, err
	}
	document, err := data(version, p.Name)
	if err != nil {
		return nil, err
	}
	if whole {
		document = one.Payload
	}
	one.Headers = map[string]string{"lang": "sql"}
	var created bool
	err = tx.QueryRow(ctx, p.sql(statement), eventID.String(), contract.Type, aggregateType, id, document,
		`{"lang":"sql"}`, at).Scan(&created)
	if err != nil || !created {
		return nil, fmt.Errorf("emit with SQL: created=%t: %w", created, err)
	}
	return []event{one}, nil
}

func (p *producer) contract(n int) *outbox.ContractFor[body] {
	if n%3 == 1 {
		return p.remarked
	}
	return p.changed
}

func data(version uint64, by string) (string, error) {
	text, err := json.Marshal(body{version, by})
	if err != nil {
		return "", fmt.Errorf("encode a body: %w", err)
	}
	return string(text), nil
}

// known is what must arrive of an event. The envelope is put together here, not by the library under test.
func (p *producer) known(contract outbox.Contract, eventID outbox.ID, at time.Time, id string,
	version uint64,
) (event, error) {
	document, err := data(version, p.Name)
	payload := fmt.Sprintf(`{"version":1,"eventId":"%s","occurredAt":"%s","data":%s}`,
		eventID, at.UTC().Format("2006-01-02T15:04:05.000000Z"), document)
	return event{
		ID: eventID.String(), Type: contract.Type, Topic: contract.Topic, Aggregate: aggregateType + "/" + id,
		Version: version, Payload: payload,
	}, err
}
