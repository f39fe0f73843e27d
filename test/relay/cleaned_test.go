package relay

import (
	"math/rand/v2"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// hostile texts, and noise from a fixed seed.
func hostile() []string {
	texts := []string{
		"a\x00b", "\xff\xfe\xfd", "cut rune \xe2\x82", "\x1b[31mred", "\u0085\u2028\u202e", strings.Repeat("é", 2049), strings.Repeat("🙂", 5000),
		strings.Repeat("x", 1<<20), strings.Repeat("\x00", 1<<16), "\uFFFD\uFFFE\uFFFF", "'; DROP TABLE outbox_events; --", `\x00\u0000`, "",
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
	for name, server := range map[string][2]string{
		"postgres18": {"POSTHASTE_POSTGRES18_URL", "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable"},
		"postgres15": {"POSTHASTE_POSTGRES15_URL", "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := server[1]
			if given := os.Getenv(server[0]); given != "" {
				address = given
			}
			pool, home := relaytest.Database(t, address)
			store(t, pool, home)
		})
	}
}

func store(t *testing.T, pool *pgxpool.Pool, home string) {
	t.Helper()
	id := outbox.NewID().String()
	if _, err := pool.Exec(t.Context(), `INSERT INTO `+home+`.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES ($1::text::uuid, 'order_created', 'order', '1', json_build_object('eventId', $1::text))`, id); err != nil {
		t.Fatal(err)
	}
	write := func(text string) (stored string, err error) {
		err = pool.QueryRow(t.Context(), "UPDATE "+home+".outbox_events SET last_error = $2 WHERE id = $1 RETURNING last_error", id, text).Scan(&stored)
		return stored, err
	}
	refused := 0
	for _, text := range hostile() {
		if _, err := write(text); err != nil {
			refused++
		}
		cleaned := clean.Text(text)
		if stored, err := write(cleaned); err != nil || stored != cleaned {
			t.Errorf("%.40q was stored as %.40q: %v", cleaned, stored, err)
		}
	}
	if refused < 40 {
		t.Errorf("only %d of the texts would have been refused as they were: they are not hostile enough", refused)
	}
}
