package emit

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
)

// EM-6: the tenant is optional and apart from the dedupe key. Where an event has both, its key begins with the tenant
// and a slash, a UUID with or without hyphens; any other key is refused, and nothing is inserted.
func TestATenantsKeyBeginsWithTheTenant(t *testing.T) {
	t.Parallel()
	const hyphens, bare = "6ba7b810-9dad-41d1-80b4-00c04fd430c8", "6ba7b8109dad41d180b400c04fd430c8"
	longest := strings.Repeat("t", 128)
	cases := []struct {
		tenant, key string
		good        bool
	}{
		{"", "", true},
		{"acme", "", true},
		{"", "other/1", true},
		{"acme", "acme/turn/request", true},
		{hyphens, hyphens + "/turn/request", true},
		{hyphens, bare + "/turn/request/2", true},
		{longest, longest + "/1", true},
		{"acme", "other/1", false},
		{"acme", "acme", false},
		{"acme", "acme2/1", false},
		{"acme2", "acme/1", false},
		{"acme", "ACME/1", false},
		{hyphens, strings.Replace(bare, "6", "7", 1) + "/1", false},
		{longest + "t", longest + "t/1", false},
		{longest + "t", "", false},
	}
	for name, emit := range map[string]corpus.Emitter{"Go": corpus.Emit, "SQL": corpus.EmitSQL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, p env) {
				orders, events, keys := 0, 0, 0
				for i, c := range cases {
					tx := p.begin(t)
					p.mustOrder(t, tx, fmt.Sprint(i))
					_, err := emit(t.Context(), tx, p.Schema, []corpus.Given{corpus.OrderCreated(`{}`).Of(c.tenant).WithKey(c.key)})
					if (err == nil) != c.good {
						t.Errorf("tenant %q with the key %q: %v", c.tenant, c.key, err)
					}
					if name == "Go" && !c.good && !errors.Is(err, outbox.ErrRefused) {
						t.Errorf("tenant %q with the key %q: %v is no refusal", c.tenant, c.key, err)
					}
					if !c.good {
						_ = tx.Rollback(t.Context()) // as whoever gets an error does
						continue
					}
					mustCommit(t, tx)
					orders, events = orders+1, events+1
					if c.key != "" {
						keys++
					}
				}
				p.wantRows(t, orders, events, keys)
				for condition, want := range map[string]int{
					"tenant_id IS NOT NULL AND dedupe_key IS NULL": 1, "tenant_id IS NULL AND dedupe_key IS NOT NULL": 1,
				} {
					if n := p.Count(t, "SELECT count(*) FROM {schema}.outbox_events WHERE "+condition); n != want {
						t.Errorf("%d events with %s, want %d", n, condition, want)
					}
				}
			})
		})
	}
}
