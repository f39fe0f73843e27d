package emit

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// dedupeCheck collects what an emitter does wrong with dedupe keys.
type dedupeCheck struct {
	env      env
	emit     corpus.Emitter
	steps    int
	problems []string
}

func checkDedupe(ctx context.Context, p env, emit corpus.Emitter) []string {
	c := &dedupeCheck{env: p, emit: emit}
	c.sameContent(ctx)
	c.otherContent(ctx)
	c.scope(ctx)
	c.batches(ctx)
	return c.problems
}

func (c *dedupeCheck) failf(format string, args ...any) {
	c.problems = append(c.problems, fmt.Sprintf(format, args...))
}

// step emits in a transaction of its own with a business row, and commits whatever emit said: a refusal
// must leave the transaction usable.
func (c *dedupeCheck) step(ctx context.Context, what string, all ...corpus.Given) ([]outbox.Receipt, error) {
	c.steps++
	order := fmt.Sprintf("step %d: %s", c.steps, what)
	tx, err := c.env.pool.Begin(ctx)
	if err != nil {
		c.failf("%s: %v", what, err)
		return nil, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if err := c.env.order(ctx, tx, order); err != nil {
		c.failf("%s: %v", what, err)
	}
	receipts, emitted := c.emit(ctx, tx, c.env.Schema, all)
	if err := tx.Commit(ctx); err != nil {
		c.failf("%s: the transaction was not usable any more: %v", what, err)
	}
	if n := c.count(ctx, "SELECT count(*) FROM {schema}.orders WHERE id = $1", order); n != 1 {
		c.failf("%s: the business row is missing", what)
	}
	return receipts, emitted
}

func (c *dedupeCheck) count(ctx context.Context, query string, args ...any) int {
	n := -1
	if err := c.env.pool.QueryRow(ctx, c.env.SQL(query), args...).Scan(&n); err != nil {
		c.failf("%s: %v", query, err)
	}
	return n
}

// created emits one event that must be new.
func (c *dedupeCheck) created(ctx context.Context, what string, event corpus.Given) outbox.ID {
	receipts, err := c.step(ctx, what, event)
	if err != nil || len(receipts) != 1 || !receipts[0].Created {
		c.failf("%s: want a new event, got %v, %v", what, receipts, err)
		return outbox.ID{}
	}
	if n := c.count(ctx, "SELECT count(*) FROM {schema}.outbox_events WHERE id = $1::text::uuid",
		receipts[0].ID.String()); n != 1 {
		c.failf("%s: the receipt says created, and there are %d events with its id", what, n)
	}
	return receipts[0].ID
}

// enqueued emits one event that must stand for the first one.
func (c *dedupeCheck) enqueued(ctx context.Context, what string, first outbox.ID, event corpus.Given) {
	before := c.count(ctx, "SELECT count(*) FROM {schema}.outbox_events")
	receipts, err := c.step(ctx, what, event)
	if err != nil || len(receipts) != 1 || receipts[0].Created || receipts[0].ID != first {
		c.failf("%s: want the first event's id %s, not created; got %v, %v", what, first, receipts, err)
	}
	if after := c.count(ctx, "SELECT count(*) FROM {schema}.outbox_events"); after != before {
		c.failf("%s: %d events were inserted", what, after-before)
	}
}

// mismatched emits events that must be refused because a key holds other content.
func (c *dedupeCheck) mismatched(ctx context.Context, what string, first outbox.ID, all ...corpus.Given) {
	before := c.count(ctx, "SELECT count(*) FROM {schema}.outbox_events")
	receipts, err := c.step(ctx, what, all...)
	var mismatch *outbox.DedupeMismatchError
	switch {
	case !errors.Is(err, outbox.ErrDedupeMismatch) || !errors.Is(err, outbox.ErrRefused) || !errors.As(err, &mismatch):
		c.failf("%s: want ErrDedupeMismatch, got %v, %v", what, receipts, err)
	case mismatch.FirstID != first:
		c.failf("%s: the error names event %s, the key is of %s", what, mismatch.FirstID, first)
	case outbox.Retryable(err):
		c.failf("%s: a mismatch would be the same on every retry", what)
	}
	if after := c.count(ctx, "SELECT count(*) FROM {schema}.outbox_events"); after != before {
		c.failf("%s: %d events were inserted", what, after-before)
	}
}

// sameContent: whatever differs on every try does not make another event.
func (c *dedupeCheck) sameContent(ctx context.Context) {
	event := corpus.OrderCreated(`{"total":1}`).WithKey("same")
	first := c.created(ctx, "first emit", event)
	c.enqueued(ctx, "second emit", first, event)
	later := event
	later.At = corpus.Occurred.AddDate(0, 0, 1)
	later.Actor = &outbox.Actor{Type: "user", ID: "7"}
	later.Headers = map[string]string{"h": "v"}
	c.enqueued(ctx, "retry with another time, actor and header", first, later)
	named := corpus.OrderCreated(`{"total":2}`).WithKey("same-id")
	named.ID = outbox.NewID()
	c.created(ctx, "first emit with an id of the application's", named)
	c.enqueued(ctx, "retry with the same id", named.ID, named)
	lenient := corpus.OrderCreated(`{"total":3}`).WithKey("first-wins")
	lenient.Contract.FirstWins = true
	first = c.created(ctx, "first emit where the first wins", lenient)
	lenient.Payload = corpus.OrderCreated(`{"total":4}`).Payload
	c.enqueued(ctx, "other content where the first wins", first, lenient)
}

// otherContent: another payload or aggregate under a used key is an error, never "already enqueued".
func (c *dedupeCheck) otherContent(ctx context.Context) {
	event := corpus.OrderCreated(`{"total":1}`).WithKey("other")
	first := c.created(ctx, "first emit", event)
	c.mismatched(ctx, "another payload", first, corpus.OrderCreated(`{"total":2}`).WithKey("other"))
	c.mismatched(ctx, "another spelling of the payload", first, corpus.OrderCreated(`{"total": 1}`).WithKey("other"))
	moved := event
	moved.AggregateID = "order-2"
	c.mismatched(ctx, "another aggregate id", first, moved)
	moved = event
	moved.Contract.Aggregate = "basket"
	c.mismatched(ctx, "another aggregate type", first, moved)
	c.enqueued(ctx, "the same content again", first, event)
}

// scope: a key belongs to its namespace, event type and tenant.
func (c *dedupeCheck) scope(ctx context.Context) {
	const key = "acme/scope"
	event := corpus.OrderCreated(`{"total":1}`).WithKey(key)
	first := c.created(ctx, "a key without tenant", event)
	ofTenant := c.created(ctx, "the same key of a tenant", event.Of("acme"))
	otherType := event
	otherType.Contract.Type = "order_paid"
	c.created(ctx, "the same key of another event type", otherType)
	otherModule := event
	otherModule.Contract.Namespace = "billing"
	c.created(ctx, "the same key of another namespace", otherModule)
	c.enqueued(ctx, "the key without tenant again", first, event)
	c.enqueued(ctx, "the key of the tenant again", ofTenant, event.Of("acme"))
}

// batches: all events of a call or none; and no key may stay behind that stands for no event, because
// its retry would be told "already enqueued" and be lost.
func (c *dedupeCheck) batches(ctx context.Context) {
	used := corpus.OrderCreated(`{"total":1}`).WithKey("used")
	first := c.created(ctx, "first emit", used)
	fresh := corpus.OrderCreated(`{"total":5}`).WithKey("fresh")
	changed := corpus.OrderCreated(`{"total":9}`).WithKey("used")
	c.mismatched(ctx, "a batch with one used key", first, fresh, changed, corpus.OrderCreated(`{}`))
	if n := c.count(ctx, `SELECT count(*) FROM {schema}.outbox_dedupe d
		WHERE NOT EXISTS (SELECT FROM {schema}.outbox_events e WHERE e.id = d.event_id)`); n != 0 {
		c.failf("%d dedupe keys stand for no event", n)
	}
	c.created(ctx, "the batch's good event again", fresh)
	receipts, err := c.step(ctx, "a batch with a repeated key", used, corpus.OrderCreated(`{"total":6}`).WithKey("newer"),
		used, corpus.OrderCreated(`{}`))
	want := []bool{false, true, false, true}
	if err != nil || len(receipts) != len(want) {
		c.failf("a batch with a repeated key: %v, %v", receipts, err)
		return
	}
	for i, receipt := range receipts {
		if receipt.Created != want[i] {
			c.failf("a batch with a repeated key: event %d created=%v", i, receipt.Created)
		}
	}
}

// blocked waits until the session waits for another transaction. It answers false when done says that it
// never did.
func (p env) blocked(ctx context.Context, tx pgx.Tx, done <-chan struct{}) (bool, error) {
	return pgtest.Waits(ctx, p.pool, tx.Conn().PgConn().PID(), done)
}
