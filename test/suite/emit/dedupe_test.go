package emit

import (
	"errors"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

func TestDedupe(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, problem := range checkDedupe(t.Context(), p, corpus.Emit) {
			t.Error(problem)
		}
	})
}

// The library and outbox_emit share the keys: a service may move from one to the other.
func TestDedupeAcrossLanguages(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, turn := range []struct {
			key           string
			first, second corpus.Emitter
		}{{"go-then-sql", corpus.Emit, corpus.EmitSQL}, {"sql-then-go", corpus.EmitSQL, corpus.Emit}} {
			tx := p.begin(t)
			event := corpus.OrderCreated(`{"total": 1.50, "note": "é"}`).WithKey(turn.key)
			one, err := turn.first(t.Context(), tx, p.Schema, []corpus.Given{event})
			if err != nil {
				t.Fatal(err)
			}
			two, err := turn.second(t.Context(), tx, p.Schema, []corpus.Given{event})
			if err != nil {
				t.Fatal(err)
			}
			if !one[0].Created || two[0].Created || one[0].ID != two[0].ID {
				t.Errorf("%s: %v, then %v", turn.key, one, two)
			}
			mustCommit(t, tx)
		}
		p.wantRows(t, 0, 2, 2)
	})
}

// In SQL a mismatch raises, and a savepoint before the call keeps the transaction.
func TestDedupeMismatchInSQL(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		tx := p.begin(t)
		p.mustEmit(t, tx, corpus.OrderCreated(`{"total":1}`).WithKey("k"))
		_, err := inSavepoint(t.Context(), tx, p.Schema, []corpus.Given{corpus.OrderCreated(`{"total":2}`).WithKey("k")})
		var state interface{ SQLState() string }
		if !errors.As(err, &state) || state.SQLState() != "PH001" || outbox.Retryable(err) {
			t.Errorf("want PH001, got %v", err)
		}
		p.mustOrder(t, tx, "1")
		mustCommit(t, tx)
		p.wantRows(t, 1, 1, 1)
	})
}
