package drivers_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// behaviours are what every driver must do alike.
var behaviours = []struct {
	name string
	test func(t *testing.T, c cell)
}{
	{"one", testOne},
	{"many", testMany},
	{"nothing_optional", testNothingOptional},
	{"bytes_one", func(t *testing.T, c cell) { testBytes(t, c, 1, false) }},
	{"bytes_many", func(t *testing.T, c cell) { testBytes(t, c, len(awkward), false) }},
	{"bytes_one_deduped", func(t *testing.T, c cell) { testBytes(t, c, 1, true) }},
	{"bytes_many_deduped", func(t *testing.T, c cell) { testBytes(t, c, len(awkward), true) }},
	{"dedupe_same", testDedupeSame},
	{"dedupe_mismatch", testDedupeMismatch},
	{"dedupe_batch", testDedupeBatch},
	{"rollback", testRollback},
	{"savepoint", testSavepoint},
	{"refused", testRejected},
	{"broken", testBroken},
	{"retryable", testRetryable},
}

func testOne(t *testing.T, c cell) {
	in := c.begin(t)
	receipts := c.emit(t, in, c.event("1", `{"total":12.50}`))
	c.wantEvents(t, 0) // not before the commit
	c.commit(t, in)
	c.wantEvents(t, 1)
	if !receipts[0].Created {
		t.Error("the event is not reported as created")
	}
	if n := c.db.Count(t,
		"SELECT count(*) FROM {schema}.outbox_events WHERE id = $1::text::uuid AND state = 0 AND attempt_count = 0",
		receipts[0].ID.String()); n != 1 {
		t.Error("the receipt's id is not that of a ready event")
	}
}

func testMany(t *testing.T, c cell) {
	events := make([]outbox.Event, 100)
	for i := range events {
		events[i] = c.event(fmt.Sprint(i), fmt.Sprintf(`{"n":%d}`, i))
	}
	// Neither the ids nor the aggregates are in the order of the call: only the order given decides.
	slices.Reverse(events[:50])
	in := c.begin(t)
	receipts := c.emit(t, in, events...)
	c.commit(t, in)
	stored := c.read(t)
	if len(stored) != len(events) {
		t.Fatalf("%d events are stored, want %d", len(stored), len(events))
	}
	for i, row := range stored {
		if row.aggregateID != events[i].AggregateID || row.id != receipts[i].ID.String() || !receipts[i].Created {
			t.Fatalf("event %d by seq is aggregate %s, id %s; emitted was aggregate %s, id %s", i, row.aggregateID, row.id,
				events[i].AggregateID, receipts[i].ID)
		}
	}
}

func testNothingOptional(t *testing.T, c cell) {
	in := c.begin(t)
	c.emit(t, in, c.event("1", `{}`))
	c.emit(t, in, c.event("2", `{}`), c.event("3", `{}`))
	keyed := c.event("4", `{}`)
	keyed.DedupeKey = "k4"
	c.emit(t, in, keyed)
	keyed = c.event("5", `{}`)
	keyed.DedupeKey = "k5"
	c.emit(t, in, keyed, c.event("6", `{}`))
	c.commit(t, in)
	for _, row := range c.read(t) {
		if row.tenant != nil || row.headers != nil {
			t.Errorf("aggregate %s: tenant %v, headers %v, want null", row.aggregateID, row.tenant, row.headers)
		}
		if wantKey := row.aggregateID == "4" || row.aggregateID == "5"; wantKey != (row.dedupeKey != nil) {
			t.Errorf("aggregate %s: dedupe key %v", row.aggregateID, row.dedupeKey)
		}
	}
}

func testDedupeSame(t *testing.T, c cell) {
	event := c.event("1", `{"a":1}`)
	event.DedupeKey = "same"
	in := c.begin(t)
	first := c.emit(t, in, event)[0]
	again := c.emit(t, in, event)[0] // in the same transaction
	c.commit(t, in)
	in = c.begin(t)
	later := c.emit(t, in, c.event("2", `{}`), event)[1] // in another one, in a batch
	c.commit(t, in)
	if !first.Created || again.Created || later.Created {
		t.Errorf("created is %t, %t, %t, want only the first", first.Created, again.Created, later.Created)
	}
	if again.ID != first.ID || later.ID != first.ID {
		t.Errorf("ids %s, %s, %s, want the first", first.ID, again.ID, later.ID)
	}
	c.wantEvents(t, 2)
}

func testDedupeMismatch(t *testing.T, c cell) {
	event := c.event("1", `{"a":1}`)
	event.DedupeKey = "key"
	in := c.begin(t)
	first := c.emit(t, in, event)[0]
	c.commit(t, in)

	other := c.event("1", `{"a":2}`)
	other.DedupeKey = "key"
	in = c.begin(t)
	_, err := in.emit(t.Context(), other)
	var mismatch *outbox.DedupeMismatchError
	if !errors.As(err, &mismatch) || !errors.Is(err, outbox.ErrRefused) || mismatch.FirstID != first.ID {
		t.Fatalf("got %v, want a mismatch with the first event", err)
	}
	c.emit(t, in, c.event("2", `{}`)) // the transaction is still usable
	c.commit(t, in)
	c.wantEvents(t, 2)
	c.wantKeys(t, 1)
}

func testDedupeBatch(t *testing.T, c cell) {
	event := c.event("1", `{"a":1}`)
	event.DedupeKey = "used"
	in := c.begin(t)
	c.emit(t, in, event)
	c.commit(t, in)

	good, bad := c.event("2", `{}`), c.event("1", `{"a":2}`)
	good.DedupeKey, bad.DedupeKey = "fresh", "used"
	in = c.begin(t)
	_, err := in.emit(t.Context(), good, c.event("3", `{}`), bad)
	if !errors.Is(err, outbox.ErrDedupeMismatch) {
		t.Fatalf("got %v, want a mismatch", err)
	}
	c.commit(t, in)
	c.wantEvents(t, 1) // none of the batch
	c.wantKeys(t, 1)   // and no key that stands for no event

	in = c.begin(t)
	if receipt := c.emit(t, in, good)[0]; !receipt.Created {
		t.Error("the retry of an event that was never stored is told that it was")
	}
	c.commit(t, in)
	c.wantEvents(t, 2)
}

func testRollback(t *testing.T, c cell) {
	event := c.event("1", `{}`)
	event.DedupeKey = "k"
	in := c.begin(t)
	c.emit(t, in, event, c.event("2", `{}`))
	if err := in.rollback(t.Context()); err != nil {
		t.Fatalf("rollback: %v", err)
	}
	c.wantEvents(t, 0)
	c.wantKeys(t, 0)
}

func testSavepoint(t *testing.T, c cell) {
	inside := c.event("2", `{}`)
	inside.DedupeKey = "k"
	in := c.begin(t)
	c.emit(t, in, c.event("1", `{}`))
	c.exec(t, in, "SAVEPOINT here")
	c.emit(t, in, inside)
	c.exec(t, in, "ROLLBACK TO SAVEPOINT here")
	c.emit(t, in, c.event("3", `{}`))
	c.commit(t, in)
	c.wantAggregates(t, "1", "3")
	c.wantKeys(t, 0)
}

func testRejected(t *testing.T, c cell) {
	in := c.begin(t)
	_, err := in.emit(t.Context(), c.event("1", `{}`), c.event("", `{}`))
	if !errors.Is(err, outbox.ErrRefused) {
		t.Fatalf("got %v, want a refusal", err)
	}
	c.emit(t, in, c.event("2", `{}`))
	c.commit(t, in)
	c.wantEvents(t, 1)
}

// testBroken: an error of the database is an error and no panic, its SQLSTATE can be read, and the
// connection is fit for the next transaction.
func testBroken(t *testing.T, c cell) {
	c.open = c.reopen(t)
	in := c.begin(t)
	c.emit(t, in, c.event("1", `{}`))
	c.exec(t, in, "SET TRANSACTION READ ONLY")
	c.wantState(t, in, "25006", c.event("1", `{}`))
	// This statement was not sent before, so whoever prepares must prepare it now, in a transaction that
	// PostgreSQL has given up. GORM's QueryRowContext would answer that with a row that panics.
	c.wantState(t, in, "25P02", c.event("2", `{}`), c.event("3", `{}`))
	_ = in.rollback(t.Context())

	in = c.begin(t)
	c.emit(t, in, c.event("4", `{}`))
	c.commit(t, in)
	c.wantEvents(t, 1)
}

func (c cell) wantState(t *testing.T, in tx, want string, events ...outbox.Event) {
	t.Helper()
	_, err := in.emit(t.Context(), events...)
	var state interface{ SQLState() string }
	if !errors.As(err, &state) || state.SQLState() != want {
		t.Fatalf("got %v, want SQLSTATE %s", err, want)
	}
	if errors.Is(err, outbox.ErrRefused) || outbox.Retryable(err) {
		t.Errorf("%v: neither a refusal nor retryable", err)
	}
}

// testRetryable: a serialization failure is recognised whatever the driver's error type is.
func testRetryable(t *testing.T, c cell) {
	event := c.event("1", `{}`)
	event.DedupeKey = "k"
	in := c.begin(t)
	c.exec(t, in, "SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
	c.exec(t, in, "SELECT 1") // takes the snapshot

	other := c.begin(t)
	c.emit(t, other, event)
	c.commit(t, other)

	if _, err := in.emit(t.Context(), event); !outbox.Retryable(err) {
		t.Errorf("got %v, want a retryable error", err)
	}
}
