package emit

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// tally is what became of a corpus. Stored and Rejected count what behaved as it must; everything else
// is a problem, so they add up to Inputs only when all is well.
type tally struct {
	Inputs, Stored, Rejected int
	Panics                   int
	CommitsAfterRejection    int
	SQLAgreed, SQLDiffers    int
	SQLNotAsked              int
	SQLRejections            []string
	Problems                 []string
}

func (c *tally) failf(in corpus.Input, format string, args ...any) {
	c.Problems = append(c.Problems, in.Name+": "+fmt.Sprintf(format, args...))
}

// checkCorpus emits every input in a transaction of its own that also writes a business row.
func checkCorpus(ctx context.Context, p env, emit corpus.Emitter, inputs []corpus.Input) *tally {
	result := &tally{}
	for _, in := range inputs {
		result.Inputs++
		if err := result.try(ctx, p, emit, in); err != nil {
			result.failf(in, "%v", err)
		}
	}
	return result
}

func (c *tally) try(ctx context.Context, p env, emit corpus.Emitter, in corpus.Input) error {
	tx, err := p.pool.Begin(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := p.order(ctx, tx, in.Name); err != nil {
		return err
	}
	all := in.Events()
	counted, statements := counting(ctx)
	receipts, panicked, err := guarded(func() ([]outbox.Receipt, error) { return emit(counted, tx, p.Schema, all) })
	switch {
	case panicked != nil:
		c.Panics++
		return fmt.Errorf("panicked: %v", panicked)
	case err == nil && in.Rejected != "":
		return errors.New("was accepted, must be refused")
	case err == nil:
		return c.wasStored(ctx, p, tx, all, receipts)
	case in.Rejected == "":
		return fmt.Errorf("must be stored: %w", err)
	case statements.Load() != 0:
		return fmt.Errorf("the database was asked %d times before the refusal: %w", statements.Load(), err)
	}
	if err := checkRejection(in, err); err != nil {
		return err
	}
	return c.wasRejected(ctx, p, tx, in)
}

// guarded runs emit and catches a panic, which would otherwise hide the rest of the corpus.
func guarded(emit func() ([]outbox.Receipt, error)) (receipts []outbox.Receipt, panicked any, err error) {
	defer func() { panicked = recover() }()
	receipts, err = emit()
	return receipts, nil, err
}

// checkRejection reads the error as the application's author would: is it one of ours, does it say which
// field and by how much, and does it keep the value to itself?
func checkRejection(in corpus.Input, err error) error {
	if !errors.Is(err, outbox.ErrRefused) {
		return fmt.Errorf("is not an ErrRefused: %w", err)
	}
	if outbox.Retryable(err) {
		return fmt.Errorf("a refusal is not retryable: %w", err)
	}
	text := err.Error()
	if !strings.Contains(text, ": "+in.Rejected+": ") {
		return fmt.Errorf("the refusal does not name %s: %w", in.Rejected, err)
	}
	for _, must := range in.Says {
		if !strings.Contains(text, must) {
			return fmt.Errorf("the refusal does not say %s: %w", must, err)
		}
	}
	if strings.Contains(text, corpus.Canary) {
		return fmt.Errorf("the refusal repeats the value: %w", err)
	}
	return nil
}

// wasRejected shows that the transaction is as good as before: it commits its business row, and nothing
// of the event is there.
func (c *tally) wasRejected(ctx context.Context, p env, tx pgx.Tx, in corpus.Input) error {
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("the transaction could not commit after the refusal: %w", err)
	}
	var orders int
	if err := p.pool.QueryRow(ctx, p.SQL("SELECT count(*) FROM {schema}.orders WHERE id = $1"),
		in.Name).Scan(&orders); err != nil {
		return err
	}
	if orders != 1 {
		return errors.New("the business row is gone after the refusal")
	}
	c.Rejected++
	c.CommitsAfterRejection++
	return nil
}

func (c *tally) wasStored(ctx context.Context, p env, tx pgx.Tx, all []corpus.Given, receipts []outbox.Receipt) error {
	if err := tx.Commit(ctx); err != nil {
		return fmt.Errorf("commit: %w", err)
	}
	if len(receipts) != len(all) {
		return fmt.Errorf("%d receipts for %d events", len(receipts), len(all))
	}
	for i, g := range all {
		if !receipts[i].Created {
			return fmt.Errorf("event %d: the receipt says it was there before", i)
		}
		if len(all) > 100 && i%1000 != 0 {
			continue // of the largest call a sample is enough; the count below has them all
		}
		if err := p.readBack(ctx, p.pool, g, receipts[i].ID.String()); err != nil {
			return fmt.Errorf("event %d: %w", i, err)
		}
	}
	c.Stored++
	return nil
}

// querier is the pool, or a transaction that will be rolled back.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// readBack compares everything that was stored with what was given, byte for byte.
func (p env) readBack(ctx context.Context, from querier, g corpus.Given, id string) error {
	var namespace, eventType, aggregateType, aggregateID, tenant, key, payload string
	var headers *string
	err := from.QueryRow(ctx, p.SQL(`SELECT namespace, event_type, aggregate_type, aggregate_id, coalesce(tenant_id, ''), 
		coalesce(dedupe_key, ''),
		payload_json::text, headers::text FROM {schema}.outbox_events WHERE id = $1::text::uuid AND state = 0 
		AND attempt_count = 0`), id).
		Scan(&namespace, &eventType, &aggregateType, &aggregateID, &tenant, &key, &payload, &headers)
	if err != nil {
		return fmt.Errorf("read back %s: %w", id, err)
	}
	for _, pair := range []struct{ what, got, want string }{
		{"namespace", namespace, corpus.Or(g.Contract.Namespace, outbox.DefaultNamespace)},
		{"event_type", eventType, g.Contract.Type},
		{"aggregate_type", aggregateType, g.Contract.Aggregate},
		{"aggregate_id", aggregateID, g.AggregateID},
		{"tenant_id", tenant, g.Tenant},
		{"dedupe_key", key, g.Key},
		{"payload_json", payload, g.Envelope(id)},
	} {
		if pair.got != pair.want {
			return fmt.Errorf("%s came back as %.200q, was %.200q", pair.what, pair.got, pair.want)
		}
	}
	if err := sameHeaders(headers, g.Headers); err != nil {
		return err
	}
	return p.keepsTheRules(ctx, from, id)
}

// keepsTheRules asks the database about an event that is stored. A row that brings its lane is held to nothing when it
// is inserted, so whoever wrote it must have known the rules, and the lane.
func (p env) keepsTheRules(ctx context.Context, from querier, id string) error {
	var right bool
	err := from.QueryRow(ctx, p.SQL(`SELECT lane = {schema}.outbox_lane(namespace, aggregate_type, aggregate_id)
		AND concat({schema}.outbox_check_event(id, namespace, event_type, aggregate_type, aggregate_id, tenant_id,
			dedupe_key, payload_json, headers), {schema}.outbox_check_headers(headers),
			{schema}.outbox_check_data(payload_json -> 'data'),
			{schema}.outbox_check_actor(payload_json -> 'actor')) = ''
		FROM {schema}.outbox_events WHERE id = $1::text::uuid`), id).Scan(&right)
	if err != nil {
		return fmt.Errorf("what was stored breaks a rule: %w", err)
	}
	if !right {
		return errors.New("stored in another lane than its aggregate's")
	}
	return nil
}

func sameHeaders(stored *string, want map[string]string) error {
	var got map[string]string
	if stored != nil {
		if err := json.Unmarshal([]byte(*stored), &got); err != nil {
			return fmt.Errorf("headers: %w", err)
		}
	}
	if !maps.Equal(got, want) {
		return fmt.Errorf("headers came back as %.200q", fmt.Sprint(got))
	}
	return nil
}

func TestCorpus(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		inputs := corpus.All()
		result := checkCorpus(t.Context(), p, corpus.Emit, inputs)
		for _, problem := range result.Problems {
			t.Error(problem)
		}
		p.wantStored(t, inputs)
		perGroup := map[string]int{}
		for _, in := range inputs {
			perGroup[in.Group]++
		}
		for group, n := range perGroup {
			figure(t, "group_"+group, n)
		}
		figure(t, "inputs", result.Inputs)
		figure(t, "stored", result.Stored)
		figure(t, "refused", result.Rejected)
		figure(t, "panics", result.Panics)
		figure(t, "commits_after_refusal", result.CommitsAfterRejection)
	})
}

// wantStored counts the events that the whole corpus must have left: a refusal that wrote something
// shows here.
func (p env) wantStored(t *testing.T, inputs []corpus.Input) {
	t.Helper()
	want, keys := 0, 0
	for _, in := range inputs {
		if in.Rejected != "" {
			continue
		}
		for _, g := range in.Events() {
			want++
			if g.Key != "" {
				keys++
			}
		}
	}
	p.wantRows(t, len(inputs), want, keys)
}
