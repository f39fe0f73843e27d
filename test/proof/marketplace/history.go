package marketplace

import (
	"context"
	_ "embed"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/outbox"
)

//go:embed sql/witness.sql
var witness string

// emitted is an event as the trigger saw it in its transaction.
type emitted struct {
	ID              outbox.ID
	Seq             int64
	Type, Aggregate string
	Payload         string
	Headers         *string
}

// readEmitted reads what committed transactions have emitted.
func readEmitted(ctx context.Context, pool *pgxpool.Pool) ([]emitted, error) {
	return rows[emitted](ctx, pool, "SELECT id, seq, type, aggregate, payload, headers FROM witness.events ORDER BY seq")
}

// transactions are the emitted events in the checker's words. Each is a transaction of its own: that several were one
// is checked by the tables. A sequence number was drawn while the transaction held its aggregate, so it is the event's
// version.
func transactions(events []emitted, registry *outbox.Registry) (check.History, error) {
	var h check.History
	for _, e := range events {
		contract, known := registry.Contract(e.Type)
		if !known {
			return nil, fmt.Errorf("marketplace proof: event %s is of type %s, which the registry does not have", e.ID, e.Type)
		}
		h = append(h, check.Record{Tx: &check.Tx{Key: e.ID.String(), Outcome: check.OK, Events: []check.Event{{
			ID: e.ID, Type: e.Type, Topic: contract.Topic, Aggregate: e.Aggregate, Version: uint64(e.Seq), Key: e.Aggregate,
			Payload: check.SumOf([]byte(e.Payload)), Headers: torture.SumOfHeaders(e.Headers),
		}}}})
	}
	return h, nil
}

// readTables reads the outbox as it is in the end, and the changes that led to it.
func readTables(ctx context.Context, pool *pgxpool.Pool) (h check.History, err error) {
	changes, err := rows[struct {
		ID            outbox.ID
		Before, After int16
	}](ctx, pool, "SELECT id, before, after FROM witness.changes ORDER BY n")
	if err != nil {
		return nil, err
	}
	for _, r := range changes {
		h = append(h, check.Record{Change: &check.Change{ID: r.ID, From: check.State(r.Before), To: check.State(r.After)}})
	}
	events, err := torture.Events(ctx, pool, "public")
	if err != nil {
		return nil, err
	}
	h = append(h, events...)
	letters, err := rows[struct {
		ID       outbox.ID
		Reason   string
		Attempts int
		Blocking bool
		Payload  string
		Headers  *string
	}](ctx, pool,
		"SELECT event_id, error_reason, attempts, blocking, payload_json::text, headers::text FROM outbox_dlq ORDER BY id")
	if err != nil {
		return nil, err
	}
	for _, r := range letters {
		h = append(h, check.Record{Letter: &check.Letter{
			ID: r.ID, Reason: r.Reason, Attempts: r.Attempts, Blocking: r.Blocking, Payload: check.SumOf([]byte(r.Payload)),
			Headers: torture.SumOfHeaders(r.Headers),
		}})
	}
	leases, err := readLeases(ctx, pool)
	return append(h, leases...), err
}

// readLeases reads the tenures of all lanes. Every start of a publisher has an id of its own, which is its name here.
func readLeases(ctx context.Context, pool *pgxpool.Pool) (h check.History, err error) {
	const microseconds = "(extract(epoch FROM %s) * 1000000)::bigint"
	leases, err := rows[struct {
		At, Until          int64
		Lane               int16
		OldOwner, OldToken string
		Owner, Token       string
		Taken, Given       bool
	}](ctx, pool, "SELECT "+fmt.Sprintf(microseconds, "at")+", coalesce("+fmt.Sprintf(microseconds,
		"lease_until")+`, 0), lane,
		coalesce(old_owner::text, ''), coalesce(old_token::text, ''), coalesce(owner::text, ''), coalesce(token::text, ''),
		token IS NOT NULL AND token IS DISTINCT FROM old_token, token IS NULL AND old_token IS NOT NULL
		FROM witness.leases ORDER BY n`)
	if err != nil {
		return nil, err
	}
	for _, r := range leases {
		step := check.Step{Do: check.Renew, Relay: r.Owner, Token: r.Token, Lane: int(r.Lane), At: r.At, Until: r.Until}
		switch {
		case r.Taken:
			step.Do = check.Acquire
		case r.Given:
			step = check.Step{Do: check.Release, Relay: r.OldOwner, Token: r.OldToken, Lane: int(r.Lane), At: r.At}
		}
		h = append(h, check.Record{Step: &step})
	}
	return h, nil
}

// rows reads what a query answers, a struct a row.
func rows[R any](ctx context.Context, pool *pgxpool.Pool, query string, args ...any) ([]R, error) {
	found, err := pool.Query(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("marketplace proof: %w", err)
	}
	list, err := pgx.CollectRows(found, pgx.RowToStructByPos[R])
	if err != nil {
		return nil, fmt.Errorf("marketplace proof: %w", err)
	}
	return list, nil
}
