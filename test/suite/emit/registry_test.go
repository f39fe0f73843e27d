package emit_test

import (
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

func TestTheDatabaseCanRejectUnknownTypes(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		emit := func(event outbox.Event) error {
			tx := db.Begin(t)
			if _, err := outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), event); err != nil {
				return errors.Join(err, tx.Rollback(t.Context()))
			}
			return tx.Commit(t.Context())
		}
		unknown := outbox.Define[struct{}](outbox.Contract{
			Type: "order_teleported", Aggregate: events.VendorOrder, Topic: "t",
		})
		misplaced := outbox.Define[struct{}](outbox.Contract{Type: "media_uploaded", Aggregate: events.Store, Topic: "t"})
		known := outbox.Define[struct{}](outbox.Contract{Type: "media_uploaded", Aggregate: events.Media, Topic: "t"})
		if err := emit(unknown.New("1", struct{}{})); err != nil {
			t.Fatalf("before the constraint anything goes: %v", err)
		}
		for range 2 { // it can be run again, and does not look at the row that is there
			db.Exec(t, registry.RejectUnknownSQL(db.Schema))
		}
		if err := emit(known.New("1", struct{}{})); err != nil {
			t.Errorf("a known type: %v", err)
		}
		for name, event := range map[string]outbox.Event{
			"unknown": unknown.New("2", struct{}{}), "of another aggregate": misplaced.New("3", struct{}{}),
		} {
			var rejected *pgconn.PgError
			if err := emit(event); !errors.As(err, &rejected) || rejected.Code != "23514" ||
				rejected.ConstraintName != outbox.UnknownTypesConstraint {
				t.Errorf("%s: got %v", name, err)
			}
		}
		if n := db.Count(t, "SELECT count(*) FROM {schema}.outbox_events"); n != 2 {
			t.Errorf("%d events, want 2", n)
		}
	})
}

func TestEveryMarketplaceTypeCanBeEmittedAndChecked(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	emitted := []outbox.Event{
		events.OrderCreated.New("o", events.OrderCreatedV1{
			OrderID: "o", VendorStoreID: "s", Lines: []events.LineItem{{Quantity: 1}},
		}),
		events.OrderStateChanged.New("o", events.OrderStateChangedV1{}),
		events.LineItemStateChanged.New("o", events.LineItemStateChangedV1{}),
		events.OrderExpired.New("o", events.OrderEndedV1{}),
		events.OrderCanceled.New("o", events.OrderEndedV1{}),
		events.ReservationReleased.New("o", events.ReservationReleasedV1{}),
		events.LicenseStatusChanged.New("l", events.LicenseStatusChangedV1{
			LicenseID: "l", StoreID: "s", Status: events.LicensePending,
		}),
		events.MediaUploaded.New("m", events.MediaUploadedV1{}),
		events.PaymentSettled.New("p", events.LedgerEntryV1{}),
		events.CashCollected.New("p", events.LedgerEntryV1{}),
		events.VendorPayoutRecorded.New("p", events.LedgerEntryV1{}),
		events.NotificationRequested.New("n", events.NotificationRequestedV1{}),
		events.AdCreated.New("a", events.AdV1{}), events.AdUpdated.New("a", events.AdV1{}),
		events.AdPaused.New("a", events.AdV1{}),
		events.AdActivated.New("a", events.AdV1{}), events.AdExpired.New("a", events.AdV1{}),
		events.AdDailyRollupReady.New("a", events.AdDailyRollupReadyV1{}),
	}
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		tx := db.Begin(t)
		if _, err := outbox.Emit(t.Context(), outbox.InSchema(tx, db.Schema), emitted...); err != nil {
			t.Fatal(err)
		}
		rows, err := tx.Query(t.Context(), db.SQL("SELECT id::text, event_type, aggregate_type, aggregate_id, "+
			"payload_json::text FROM {schema}.outbox_events ORDER BY seq"))
		if err != nil {
			t.Fatal(err)
		}
		defer rows.Close()
		types := map[string]bool{}
		for rows.Next() {
			var id, payload string
			var stored outbox.Stored
			if err := rows.Scan(&id, &stored.EventType, &stored.AggregateType, &stored.AggregateID, &payload); err != nil {
				t.Fatal(err)
			}
			if stored.ID, err = outbox.ParseID(id); err != nil {
				t.Fatal(err)
			}
			stored.Payload = []byte(payload)
			if _, err := registry.Check(stored); err != nil {
				t.Errorf("%s: %v", stored.EventType, err)
			}
			types[stored.EventType] = true
		}
		if err := rows.Err(); err != nil {
			t.Fatal(err)
		}
		if len(types) != len(events.EventTypes) {
			t.Errorf("%d types were emitted, want %d", len(types), len(events.EventTypes))
		}
	})
}
