package emit_test

import (
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

func TestModulesShareOneTableByNamespace(t *testing.T) {
	t.Parallel()
	in := func(namespace string) outbox.Event {
		contract := outbox.Define[struct{}](outbox.Contract{
			Type: "changed", Aggregate: "account", Topic: "t", Namespace: namespace,
		})
		event := contract.New("1", struct{}{})
		event.DedupeKey = "the same key"
		return event
	}
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		tx := outbox.InSchema(db.Begin(t), db.Schema)
		receipts, err := outbox.Emit(t.Context(), tx, in("billing"), in("chat"), in(""), in("billing"))
		if err != nil {
			t.Fatal(err)
		}
		for i, created := range []bool{true, true, true, false} {
			if receipts[i].Created != created {
				t.Errorf("event %d: created is %v", i, receipts[i].Created)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		n := db.Count(t, `SELECT count(DISTINCT namespace) FROM {schema}.outbox_events
			WHERE namespace IN ('billing', 'chat', 'default')`)
		if n != 3 {
			t.Errorf("%d namespaces, want 3", n)
		}
	})
}

func TestAggregatesAreNamedAndNotReferenced(t *testing.T) {
	t.Parallel()
	contract := outbox.Define[struct{}](outbox.Contract{Type: "stored", Aggregate: "UploadFile", Topic: "t"})
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		if n := db.Count(t,
			"SELECT count(*) FROM pg_constraint WHERE contype = 'f' AND conrelid = '{schema}.outbox_events'::regclass"); n != 0 {
			t.Errorf("outbox_events has %d foreign keys", n)
		}
		tx := outbox.InSchema(db.Begin(t), db.Schema)
		for _, id := range []string{"7", "0192af3e-0000-7000-8000-00000000000f", "eu/west 1:käse"} {
			if _, err := outbox.Emit(t.Context(), tx, contract.New(id, struct{}{})); err != nil {
				t.Fatal(err)
			}
		}
		if err := tx.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE aggregate_type = 'UploadFile' AND "+
			"aggregate_id IN ('7', '0192af3e-0000-7000-8000-00000000000f', 'eu/west 1:käse')"); n != 3 {
			t.Errorf("%d events, want 3", n)
		}
	})
}
