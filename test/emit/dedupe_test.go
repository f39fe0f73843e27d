package emit

import (
	"errors"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

func TestDedupe(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		for _, problem := range checkDedupe(t.Context(), p, library) {
			t.Error(problem)
		}
	})
}

// The library and outbox_emit share the keys: a service may move from one to the other.
func TestDedupeAcrossLanguages(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p place) {
		for _, turn := range []struct {
			key           string
			first, second emitter
		}{{"go-then-sql", library, outboxEmit}, {"sql-then-go", outboxEmit, library}} {
			tx := p.begin(t)
			event := orderCreated(`{"total": 1.50, "note": "é"}`).withKey(turn.key)
			one, err := turn.first(t.Context(), tx, p.Schema, []given{event})
			if err != nil {
				t.Fatal(err)
			}
			two, err := turn.second(t.Context(), tx, p.Schema, []given{event})
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
	onEach(t, func(t *testing.T, p place) {
		tx := p.begin(t)
		p.mustEmit(t, tx, orderCreated(`{"total":1}`).withKey("k"))
		_, err := inSavepoint(t.Context(), tx, p.Schema, []given{orderCreated(`{"total":2}`).withKey("k")})
		var state interface{ SQLState() string }
		if !errors.As(err, &state) || state.SQLState() != "PH001" || outbox.Retryable(err) {
			t.Errorf("want PH001, got %v", err)
		}
		p.mustOrder(t, tx, "1")
		mustCommit(t, tx)
		p.wantRows(t, 1, 1, 1)
	})
}
