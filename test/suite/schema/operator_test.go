package schema

import (
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// X6: whatever an operator changes of events stands in the log, under the role that had logged in.
func TestOperatorsChangeNothingWithoutTheLog(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		ready, dead := insertEvent(t, db, "1", 0), insertEvent(t, db, "2", 5)
		role, other := pgtest.NewRole(t, db.Server, "operator"), pgtest.NewRole(t, db.Server, "colleague")
		for _, operator := range []string{role, other} {
			db.Exec(t, "SELECT {schema}.outbox_grant('operator', $1)", operator)
		}
		db.Exec(t, "GRANT "+quote(other)+" TO "+quote(role))
		conn := connect(t, pgtest.As(t, db.URL, role))
		run := func(statement string, args ...any) string {
			t.Helper()
			_, err := conn.Exec(t.Context(), db.SQL(statement), args...)
			return pgtest.SQLState(err)
		}
		state := func(id string) int {
			t.Helper()
			return db.Count(t, "SELECT state FROM {schema}.outbox_events WHERE id = $1", id)
		}
		if got := run("UPDATE {schema}.outbox_events SET state = 7 WHERE id = $1", ready); got != "42501" ||
			state(ready) != 0 {
			t.Errorf("an operator makes a ready event one in state %d, with SQLSTATE %q and no log", state(ready), got)
		}

		// As a colleague, and under a name that is not theirs.
		for _, statement := range []string{
			"SET ROLE " + quote(other),
			"SELECT {schema}.outbox_act('the boss', 'a test order', 'discard', '{" + ready + "," + dead + "}')",
			"SELECT {schema}.outbox_pause('the boss', 'a test', 'all')", "SELECT {schema}.outbox_resume('the boss', '', 'all')",
		} {
			if got := run(statement); got != "" {
				t.Fatalf("%s: SQLSTATE %s", statement, got)
			}
		}
		if state(ready) != 0 || state(dead) != 7 {
			t.Errorf("the ready event is in state %d, the dead one in %d", state(ready), state(dead))
		}
		if n := db.Count(t, `SELECT count(*) FROM {schema}.outbox_actions
			WHERE session_role = $1 AND actor = 'the boss' AND verb IN ('discard', 'pause', 'resume')`, role); n != 3 {
			t.Errorf("%d of 3 actions stand under the role that did them", n)
		}
	})
}

// What relay/operator checks before it sends, the function checks as well: people with psql call it.
func TestActChecksWhatItIsGiven(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		dead := insertEvent(t, db, "1", 5)
		conn := connect(t, db.URL)
		for what, c := range map[string]struct {
			begin pgx.TxIsoLevel
			args  string
			want  string
		}{
			"no such verb":       {"", "'me', 'why', 'publish', ARRAY['{dead}'::uuid]", "22023"},
			"no verb":            {"", "'me', 'why', NULL, ARRAY['{dead}'::uuid]", "22023"},
			"a discard for ' '":  {"", "'me', ' ', 'discard', ARRAY['{dead}'::uuid]", "22023"},
			"too many":           {"", "'me', 'why', 'redrive', array_fill('{dead}'::uuid, ARRAY[10001])", "22023"},
			"no actor":           {"", "'', 'why', 'redrive', ARRAY['{dead}'::uuid]", "23514"},
			"no action":          {"", "'me', 'why', 'redrive', ARRAY['{dead}'::uuid], NULL", "23502"},
			"an older snapshot":  {pgx.RepeatableRead, "'me', 'why', 'redrive', ARRAY['{dead}'::uuid]", "25000"},
			"nothing":            {"", "'me', 'why', 'redrive', NULL", ""},
			"an event":           {"", "'me', 'why', 'redrive', ARRAY['{dead}'::uuid]", ""},
			"as many as may be":  {"", "'me', 'why', 'redrive', array_fill('{dead}'::uuid, ARRAY[10000])", ""},
			"what does not fit":  {"", "'me', repeat('x', 2049), 'redrive', ARRAY['{dead}'::uuid]", "23514"},
			"an actor too long":  {"", "repeat('x', 257), 'why', 'redrive', ARRAY['{dead}'::uuid]", "23514"},
			"a word that is not": {"", "'me', 'why', 'redrive', ARRAY['x']::uuid[]", "22P02"},
		} {
			tx, err := conn.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: c.begin})
			if err != nil {
				t.Fatal(err)
			}
			_, err = tx.Exec(t.Context(), db.SQL("SELECT {schema}.outbox_act("+strings.ReplaceAll(c.args, "{dead}", dead)+")"))
			if got := pgtest.SQLState(err); got != c.want {
				t.Errorf("%s: SQLSTATE %q, want %q: %v", what, got, c.want, err)
			}
			if err := tx.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
