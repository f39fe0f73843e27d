package emit_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

type orderCreated struct {
	Total float64 `json:"total"`
}

var orderCreatedContract = outbox.Define[orderCreated](outbox.Contract{Type: "order_created", Aggregate: "order", Topic: "orders"})

func TestSmoke(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		tx := db.Begin(t)
		ev := orderCreatedContract.New("1", orderCreated{Total: 12.5})
		r, err := outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), ev)
		t.Log(r, err)
		ev.DedupeKey = "k"
		r, err = outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), ev)
		t.Log(r, err)
		r, err = outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), ev, ev, orderCreatedContract.New("1", orderCreated{Total: 13}))
		t.Log(r, err)
		ev2 := orderCreatedContract.New("1", orderCreated{Total: 12.6})
		ev2.DedupeKey = "k"
		ev3 := ev
		ev3.DedupeKey = "k3"
		r, err = outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), ev2, ev3)
		t.Log(r, err)
		r, err = outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), ev3)
		t.Log(r, err)
		r, err = outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), orderCreatedContract.New("1", orderCreated{Total: 13}), orderCreatedContract.New("2", orderCreated{Total: 13}))
		t.Log(r, err)
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		t.Log(db.Count(t, "SELECT count(*) FROM {schema}.outbox_events"))
	})
}
