package relay

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// hostile texts, and noise from a fixed seed.
func hostile() []string {
	texts := []string{
		"a\x00b", "\xff\xfe\xfd", "cut rune \xe2\x82", "\x1b[31mred", "\u0085\u2028\u202e", strings.Repeat("é", 2049),
		strings.Repeat("🙂", 5000),
		strings.Repeat("x", 1<<20), strings.Repeat("\x00", 1<<16), "\uFFFD\uFFFE\uFFFF", "'; DROP TABLE outbox_events; --",
		`\x00\u0000`, "",
	}
	noise := rand.New(rand.NewPCG(1, 2))
	for range 40 {
		text := make([]byte, 1+noise.IntN(4000))
		for i := range text {
			text[i] = byte(noise.Uint32())
		}
		texts = append(texts, string(text))
	}
	return texts
}

// Fault S-4: whatever a broker says, the settle that writes it down does not fail because of it.
func TestCleanedTextCanBeStored(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, storeHostile)
}

func storeHostile(t *testing.T, db *pgtest.DB) {
	t.Helper()
	id := outbox.NewID().String()
	db.Exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES ($1::text::uuid, 'order_created', 'order', '1', json_build_object('eventId', $1::text))`, id)
	write := func(text string) (stored string, err error) {
		err = db.Pool.QueryRow(t.Context(), db.SQL(`WITH died AS (
				UPDATE {schema}.outbox_events SET last_error = $2 WHERE id = $1 RETURNING *
			) INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
				aggregate_type, aggregate_id, error_reason, error_detail, payload_json)
			SELECT seq, id, created_at, 1, false, namespace, event_type, aggregate_type, aggregate_id, 'rejected', last_error,
				payload_json FROM died RETURNING error_detail`), id, text).Scan(&stored)
		return stored, err
	}
	rejected := 0
	for _, text := range hostile() {
		if _, err := write(text); err != nil {
			rejected++
		}
		cleaned := clean.Text(text)
		if stored, err := write(cleaned); err != nil || stored != cleaned {
			t.Errorf("%.40q was stored as %.40q: %v", cleaned, stored, err)
		}
	}
	if rejected < 40 {
		t.Errorf("only %d of the texts would have been refused as they were: they are not hostile enough", rejected)
	}
}
