package schema

import (
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

const (
	insertKey = `INSERT INTO {schema}.outbox_dedupe (namespace, event_type, tenant_id, dedupe_key, event_id, content_hash)
		VALUES ('default', $1::text, $2::text, $3::text, $4::text::uuid, $5::bytea)`
	insertKeyed = `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, tenant_id, dedupe_key,
		payload_json) VALUES ($1::text::uuid, 'order_created', 'order', '1', nullif($2::text, ''), left($3::text, 512),
		json_build_object('eventId', $1::text))`
)

// X5: with schema/optional/keys_with_events.sql no producer can take a key without an event. Whoever emits with that
// key later would be told that it is enqueued already, and nothing would ever be published.
func TestAKeyNeedsItsEvent(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		script, err := os.ReadFile("../../../schema/optional/keys_with_events.sql")
		if err != nil {
			t.Fatal(err)
		}
		mustExec(t, pgtest.OpenSQL(t, "pgx", withParameter(t, db.URL, "search_path", db.Schema)), string(script))
		producer := asPart(t, db, "producer")
		newID := func() string {
			t.Helper()
			return column(t, db.Pool, db.SQL("SELECT {schema}.outbox_uuid7()::text"))[0]
		}
		insert := func(eventType, tenant, key, event string) string {
			t.Helper()
			_, err := producer.Exec(t.Context(), db.SQL(insertKey), eventType, tenant, key, event, []byte("x"))
			return pgtest.SQLState(err)
		}
		event := newID()
		db.Exec(t, insertKeyed, event, "acme", "acme/mine")
		for what, c := range map[string][4]string{
			"no event":                   {"order_created", "", "invoice 1", newID()},
			"an event with another key":  {"order_created", "acme", "acme/yours", event},
			"an event of another tenant": {"order_created", "other", "acme/mine", event},
			"an event of no tenant":      {"order_created", "", "acme/mine", event},
			"an event of another type":   {"order_paid", "acme", "acme/mine", event},
		} {
			if got := insert(c[0], c[1], c[2], c[3]); got != "23001" {
				t.Errorf("a key for %s: SQLSTATE %q, want 23001", what, got)
			}
		}
		if got := insert("order_created", "acme", "acme/mine", event); got != "" {
			t.Errorf("a key for its event: SQLSTATE %s", got)
		}
		created := column(t, producer, db.SQL("SELECT created::text FROM {schema}.outbox_emit('order_created', 'order', "+
			"'1', '{}', dedupe_key => 'invoice 1')"))
		if created[0] != "true" || db.Count(t,
			"SELECT count(*) FROM {schema}.outbox_events WHERE dedupe_key = 'invoice 1'") != 1 {
			t.Errorf("somebody else's emit with the key made an event: %s", created[0])
		}
		if n := db.Count(t, `SELECT count(*) FROM pg_proc WHERE oid = '{schema}.outbox_check_key()'::regprocedure
			AND 'search_path=pg_catalog, ' || $1::text || ', pg_temp' = ANY (proconfig)
			AND NOT has_function_privilege('public', oid, 'EXECUTE')`, db.Schema); n != 1 {
			t.Error("the function is not sealed")
		}
	})
}

// X5: what a producer may write into outbox_dedupe has a size.
func TestKeysAndHashesHaveLimits(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		producer := asPart(t, db, "producer")
		for _, c := range []struct {
			key, hash int
			want      string
		}{{512, 64, ""}, {513, 64, "23514"}, {1, 65, "23514"}} {
			id, key := column(t, db.Pool, db.SQL("SELECT {schema}.outbox_uuid7()::text"))[0], strings.Repeat("k", c.key)
			tx, err := producer.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = tx.Rollback(t.Context()) }()
			if _, err := tx.Exec(t.Context(), db.SQL(insertKeyed), id, "", key); err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), db.SQL(insertKey), "order_created", "", key, id, make([]byte, c.hash))
			if got := pgtest.SQLState(err); got != c.want {
				t.Errorf("a key of %d bytes with a hash of %d: SQLSTATE %q, want %q: %v", c.key, c.hash, got, c.want, err)
			}
		}
	})
}
