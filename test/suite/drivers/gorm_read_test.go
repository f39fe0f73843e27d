package drivers_test

import (
	"encoding/json"
	"testing"

	"gorm.io/gorm"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/outboxgorm"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// gormModes are the ways in which GORM reads.
var gormModes = map[string]gormMode{
	"default":              {},
	"PrepareStmt":          {prepare: true},
	"PreferSimpleProtocol": {simple: true},
	"exec":                 {parameters: "default_query_exec_mode=exec"},
	"pq":                   {driver: "postgres"},
	"pq/binary_parameters": {driver: "postgres", parameters: "binary_parameters=yes"},
}

// TestGORM uses the model and EmitGORM on every server in every mode, with the outbox in the
// search_path.
func TestGORM(t *testing.T) {
	t.Parallel()
	for name, mode := range gormModes {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
				handle := newGORM(t, withParameters(t, db.URL, "search_path="+db.Schema), mode)
				open := openPgx("")(t, db.URL, db.Schema)
				for _, sub := range []struct {
					name string
					test func(*testing.T, cell, *gorm.DB)
				}{
					{"events", testGORMReadsEvents},
					{"held_events", testGORMReadsHeldEvents},
					{"dead_letters", testGORMReadsDeadLetters},
					{"read_only", testGORMModelDoesNotWrite},
					{"emit", testEmitGORMInTransaction},
				} {
					t.Run(sub.name, func(t *testing.T) {
						sub.test(t, cell{db: db, open: open, contract: contractOf(sub.name)}, handle.WithContext(t.Context()))
					})
				}
			})
		})
	}
}

// given emits two events, one with everything and one with nothing optional.
func (c cell) given(t *testing.T) (full, bare outbox.Event, payload string) {
	t.Helper()
	full = c.event(`a"b\c `+c.contract.Contract().Type, "{ \"n\" : 1.50,\"n\":2,\t\"u\":\"ü🙂\" }")
	full.ID, full.TenantID, full.DedupeKey = outbox.NewID(), "tenant", "tenant/key"
	full.Headers = map[string]string{"trace": `{"x"}`}
	bare = c.event("2", `{}`)
	bare.ID = outbox.NewID()
	in := c.begin(t)
	c.emit(t, in, full, bare)
	c.commit(t, in)
	return full, bare, c.read(t)[0].payload
}

// testGORMReadsEvents finds events through the model the ways an application looks for them.
func testGORMReadsEvents(t *testing.T, c cell, db *gorm.DB) {
	full, bare, payload := c.given(t)
	for name, query := range map[string]*gorm.DB{
		"aggregate":  db.Where("aggregate_type = ? AND aggregate_id = ?", "order", full.AggregateID),
		"struct":     db.Where(&outboxgorm.Event{AggregateID: full.AggregateID}),
		"event type": db.Where("event_type = ? AND tenant_id IS NOT NULL", "events"),
		"pending":    db.Where("event_type = ? AND state = ?", "events", outboxgorm.Ready).Order("seq").Limit(1),
		"id":         db.Where("id = ?", full.ID.String()),
		"schema": db.Table(c.db.Schema+".outbox_events").Where("event_type = ? AND dedupe_key = ?",
			"events", full.DedupeKey),
	} {
		var events []outboxgorm.Event
		if err := query.Find(&events).Error; err != nil || len(events) != 1 {
			t.Errorf("by %s: %d events (%v), want 1", name, len(events), err)
			continue
		}
		wantFull(t, &events[0], full, payload)
	}
	var event outboxgorm.Event
	if err := db.First(&event, "id = ?", bare.ID.String()).Error; err != nil {
		t.Fatal(err)
	}
	if event.TenantID != nil || event.DedupeKey != nil || event.Headers != nil ||
		event.PublishedAt != nil || event.LastError != nil {
		t.Errorf("an event with nothing optional is read as %+v", event)
	}
}

func wantFull(t *testing.T, got *outboxgorm.Event, want outbox.Event, payload string) {
	t.Helper()
	if string(got.PayloadJSON) != payload {
		t.Errorf("payload\n got %s\nwant %s", got.PayloadJSON, payload)
	}
	if got.ID != want.ID.String() || got.AggregateType != "order" || got.AggregateID != want.AggregateID ||
		got.EventType != "events" || got.Namespace != "default" {
		t.Errorf("read %+v", got)
	}
	if got.Seq == 0 || got.CreatedAt.IsZero() || got.State != outboxgorm.Ready || got.AttemptCount != 0 {
		t.Errorf("read %+v", got)
	}
	if got.TenantID == nil || *got.TenantID != want.TenantID || got.DedupeKey == nil || *got.DedupeKey != want.DedupeKey {
		t.Errorf("tenant %v, dedupe key %v", got.TenantID, got.DedupeKey)
	}
	if got.Headers == nil || string(*got.Headers) != `{"trace":"{\"x\"}"}` {
		t.Errorf("headers %v", got.Headers)
	}
	// An event in somebody's JSON answer is a document and not base64.
	if encoded, err := json.Marshal(got.Headers); err != nil || string(encoded) != string(*got.Headers) {
		t.Errorf("encoded as %s (%v)", encoded, err)
	}
}

// testGORMReadsHeldEvents reads what holds an event back through the model, and finds the event from there.
func testGORMReadsHeldEvents(t *testing.T, c cell, db *gorm.DB) {
	full, _, _ := c.given(t)
	c.db.Exec(t, `
		WITH held AS (UPDATE {schema}.outbox_events SET state = 1, attempt_count = 3, last_error = 'refused'
		               WHERE id = $1::text::uuid RETURNING *)
		INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
		SELECT lane, seq, 1, '2030-01-01', namespace, event_type, aggregate_type, aggregate_id FROM held`,
		full.ID.String())
	var held []outboxgorm.HeldEvent
	if err := db.Where("kind = ? AND event_type = ?", outboxgorm.Retrying, "held_events").Find(&held).Error; err != nil ||
		len(held) != 1 {
		t.Fatalf("%d held events (%v), want 1", len(held), err)
	}
	got := held[0]
	if got.Due == nil || got.Due.UTC().Year() != 2030 || got.Since.IsZero() || got.Version == 0 || got.Lane == 0 ||
		got.Namespace != "default" || got.AggregateType != "order" || got.AggregateID != full.AggregateID {
		t.Errorf("read %+v", got)
	}
	var event outboxgorm.Event
	if err := db.First(&event, "aggregate_type = ? AND aggregate_id = ? AND seq = ?", got.AggregateType, got.AggregateID,
		got.Seq).Error; err != nil {
		t.Fatal(err)
	}
	if event.ID != full.ID.String() || event.State != outboxgorm.Held || event.AttemptCount != 3 ||
		event.LastError == nil || *event.LastError != "refused" {
		t.Errorf("read %+v", event)
	}
}

// testGORMReadsDeadLetters reads a dead letter through the model.
func testGORMReadsDeadLetters(t *testing.T, c cell, db *gorm.DB) {
	full, _, payload := c.given(t)
	c.db.Exec(t, `
		INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, tenant_id, 
		event_type,
		                                 aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json)
		SELECT seq, id, created_at, 12, true, namespace, tenant_id, event_type,
		       aggregate_type, aggregate_id, 'orders', 'max_attempts', 'refused', payload_json
		  FROM {schema}.outbox_events WHERE id = $1::text::uuid`, full.ID.String())
	var letters []outboxgorm.DeadLetter
	if err := db.Where("event_id = ?", full.ID.String()).Find(&letters).Error; err != nil || len(letters) != 1 {
		t.Fatalf("%d dead letters (%v), want 1", len(letters), err)
	}
	got := letters[0]
	if got.ID == 0 || got.Attempts != 12 || !got.Blocking || got.ErrorReason != "max_attempts" || got.Headers != nil ||
		got.FailedAt.IsZero() {
		t.Errorf("read %+v", got)
	}
	if got.Topic == nil || *got.Topic != "orders" || got.TenantID == nil || *got.TenantID != "tenant" ||
		string(got.PayloadJSON) != payload {
		t.Errorf("read %+v", got)
	}
}

// testGORMModelDoesNotWrite: whatever is tried with the model, the stored row stays as it is.
func testGORMModelDoesNotWrite(t *testing.T, c cell, db *gorm.DB) {
	full, _, _ := c.given(t)
	var event outboxgorm.Event
	if err := db.First(&event, "id = ?", full.ID.String()).Error; err != nil {
		t.Fatal(err)
	}
	stored := c.snapshot(t)
	for _, try := range []struct {
		name     string
		rejected bool // or nothing is sent, and nothing is said
		write    func(outboxgorm.Event) *gorm.DB
	}{
		{"Create", true, func(e outboxgorm.Event) *gorm.DB { e.ID = outbox.NewID().String(); return db.Create(&e) }},
		{"Save", true, func(e outboxgorm.Event) *gorm.DB { e.State = outboxgorm.Dead; return db.Save(&e) }},
		{"Updates", false, func(e outboxgorm.Event) *gorm.DB {
			return db.Model(&e).Updates(outboxgorm.Event{State: outboxgorm.Dead})
		}},
		{"Updates by map", false, func(e outboxgorm.Event) *gorm.DB {
			return db.Model(&e).Updates(map[string]any{"event_type": "x"})
		}},
		{"Update", false, func(e outboxgorm.Event) *gorm.DB { return db.Model(&e).Update("state", outboxgorm.Dead) }},
		{"Delete", true, func(e outboxgorm.Event) *gorm.DB { return db.Delete(&e) }},
	} {
		if err := try.write(event).Error; (err != nil) != try.rejected {
			t.Errorf("%s: %v", try.name, err)
		}
		if now := c.snapshot(t); now != stored {
			t.Errorf("%s changed the table\nfrom %s\n  to %s", try.name, stored, now)
		}
	}
}

// snapshot prints all events of the test's schema with the transactions that wrote them.
func (c cell) snapshot(t *testing.T) string {
	t.Helper()
	var text string
	if err := c.db.Pool.QueryRow(t.Context(),
		c.db.SQL("SELECT string_agg(e.xmin || e::text, E'\n' ORDER BY seq) FROM {schema}.outbox_events e")).Scan(
		&text); err != nil {
		t.Fatal(err)
	}
	return text
}
