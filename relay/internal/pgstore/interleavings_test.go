package pgstore_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
)

// What happens between the steps of several sessions decides whether a lane can have two owners. Here and in
// interleavings_lanes_test.go each such order is played with the statements as they are, and with one that looks as
// good and is not: the second must show the fault, or the test of the first is worth nothing.

// swap replaces parts of a text that must be there: pairs of old and new.
func swap(t testing.TB, text string, pairs ...string) string {
	t.Helper()
	for i := 0; i < len(pairs); i += 2 {
		if !strings.Contains(text, pairs[i]) {
			t.Fatalf("there is no %q in\n%s", pairs[i], text)
		}
		text = strings.Replace(text, pairs[i], pairs[i+1], 1)
	}
	return text
}

// gate is what a statement waits at, behind its snapshot, while a transaction from shut is open.
func (w *world) gate() string { return "pg_advisory_xact_lock_shared(hashtext('" + w.schema + "'))" }

// shut closes the gate until the transaction ends.
func (w *world) shut(t testing.TB) pgx.Tx {
	t.Helper()
	tx := w.begin(t)
	do(t, tx, "SELECT pg_advisory_xact_lock(hashtext($1))", w.schema)
	return tx
}

func do(t testing.TB, tx pgx.Tx, statement string, args ...any) {
	t.Helper()
	if _, err := tx.Exec(t.Context(), statement, args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func commit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatal(err)
	}
}

func pid(tx pgx.Tx) uint32 { return tx.Conn().PgConn().PID() }

// waiter waits until a session waits for this backend, and returns the backend of that.
func (w *world) waiter(t testing.TB, pid uint32) uint32 {
	t.Helper()
	w.blocked(t, pid, 1)
	return uint32(w.count(t, "SELECT max(pid) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", int(pid)))
}

// beside calls something while the test goes on. The answer is received with get.
func beside[T any](call func() (T, error)) <-chan func(testing.TB) T {
	answers := make(chan func(testing.TB) T, 1)
	go func() { answers <- must(call()) }()
	return answers
}

func get[T any](t testing.TB, what string, from <-chan func(testing.TB) T) T {
	t.Helper()
	return receive(t, what, from)(t)
}

// ending is the text of the function that ends relays.
func (w *world) ending(t testing.TB) (text string) {
	t.Helper()
	query := w.sql("SELECT pg_get_functiondef('{schema}.outbox_end_expired'::regproc)")
	if err := w.owner.QueryRow(t.Context(), query).Scan(&text); err != nil {
		t.Fatal(err)
	}
	return text
}

// Parts of that text.
const (
	theGuard      = "IF current_setting('transaction_isolation') <> 'read committed' THEN"
	theLock       = "PERFORM FROM outbox_relays r WHERE r.id = candidate AND r.ended_at IS NULL FOR UPDATE SKIP LOCKED;"
	theSecondLook = "CONTINUE WHEN newest.until >= clock_timestamp();"
)

// beatText runs the statement of a beat, or one like it, and tells whether the relay was told that it lives.
func (w *world) beatText(ctx context.Context, in interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}, text string, owner core.Owner,
) (bool, error) {
	relay, token := pgstore.Asker(owner)
	rows, err := in.Query(ctx, text, relay, token, w.beats.Add(1), lease.Microseconds(), []int16{}, []int64{}, []bool{},
		[]int16{}, []string{}, "", 0, 0, []int64{})
	if err != nil {
		return false, err
	}
	answers, err := pgx.CollectRows(rows, pgx.RowTo[[]int16])
	return len(answers) == 1, err
}

// lives tells whether the newest beat of the relay says so.
func (w *world) lives(t testing.TB, owner core.Owner) bool {
	t.Helper()
	return w.count(t, "SELECT count(*) FROM (SELECT until FROM {schema}.outbox_beats WHERE relay = $1 "+
		"ORDER BY number DESC LIMIT 1) b WHERE until > clock_timestamp()", owner.Relay.String()) == 1
}

// TestABeatThatATakerHasNotSeen: it commits when who ends relays has found this one expired, and has not locked it yet.
// The relay lives. Only a look behind the lock, in a snapshot of its own, sees the beat: not one that was made before,
// not the lock that the beat had taken and given back, and not that the row is read again because it was changed.
func TestABeatThatATakerHasNotSeen(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		text := w.ending(t)
		stop := "PERFORM " + w.gate() + ";\n"
		oneStatement := `RETURN QUERY WITH gate AS MATERIALIZED (SELECT ` + w.gate() + `), dead AS MATERIALIZED (
				SELECT r.id FROM gate CROSS JOIN outbox_relays r WHERE r.ended_at IS NULL
				   AND (SELECT b.until FROM outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT 1)
				       < statement_timestamp()
				   FOR UPDATE OF r SKIP LOCKED
			), freed AS (
				UPDATE outbox_lanes l SET owner = NULL, token = NULL FROM dead WHERE l.owner = dead.id
			)
			UPDATE outbox_relays r SET ended_at = clock_timestamp(), lanes = '{}' FROM dead WHERE r.id = dead.id RETURNING r.id;
			RETURN; `
		for name, taker := range map[string]struct {
			text   string
			unsafe bool
		}{
			"as it is":       {text: swap(t, text, theLock, stop+theLock)},
			"no second look": {swap(t, text, theLock, stop+theLock, theSecondLook, ""), true},
			"one statement":  {swap(t, text, "FOR candidate IN", oneStatement+"FOR candidate IN"), true},
		} {
			for what, happens := range map[string]func(held holder){
				"a row": func(held holder) {
					w.exec(t, "INSERT INTO {schema}.outbox_beats (relay, number, until) VALUES ($1, $2, now() + interval '1 hour')",
						held.Relay.String(), w.beats.Add(1))
				},
				"a beat": func(held holder) { w.beat(t, core.Heartbeat{Owner: held.Owner}) },
				"a beat, and a lane more": func(held holder) {
					w.beat(t, core.Heartbeat{Owner: held.Owner})
					if more := w.take(t, held.Owner, 1, allLanes()...); len(more.taken) != 1 {
						t.Errorf("took %v", more.taken)
					}
				},
			} {
				w.exec(t, taker.text)
				held := w.hold(t, "1")
				w.expire(t)
				gate := w.shut(t)
				taking := beside(func() ([]outbox.ID, error) { return w.store.EndExpired(t.Context(), core.EndExpired{Max: 9}) })
				w.blocked(t, pid(gate), 1)
				happens(held)
				commit(t, gate)
				ended := get(t, "the taker", taking)
				if isEnded := w.isEnded(t, held.Owner); isEnded != taker.unsafe || len(ended) > 0 != taker.unsafe ||
					!w.lives(t, held.Owner) {
					t.Errorf("%s, with %s in between: a relay that lives was ended: %t, want %t", name, what, isEnded, taker.unsafe)
				}
				w.exec(t, text)
				w.end(t)
			}
		}
	})
}

// TestABeatBehindATaker: one that comes when its relay is locked waits. Then it is one more, if the relay was found
// alive, or none: a relay that was ended must not be told that it lives. The foreign key makes a beat wait as well, and
// lets it pass then.
func TestABeatBehindATaker(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		text, beat := w.ending(t), statement("beat", w)
		for name, c := range map[string]struct {
			beat        string
			found, told bool // that it lives
		}{
			"found alive":    {beat, true, true},
			"ended":          {beat, false, false},
			"without a lock": {swap(t, beat, "FOR KEY SHARE", ""), false, true},
		} {
			owner := w.register(t)
			w.expire(t)
			if c.found { // it beats between the two looks
				w.exec(t, swap(t, text, theLock, "PERFORM "+w.gate()+";\n"+theLock))
			}
			taking := w.beginAs(t) // one that began before the function was changed might still call the old one
			if c.found {
				gate := w.shut(t)
				taken := beside(func() (any, error) { return nil, w.endIn(t.Context(), taking) })
				w.blocked(t, pid(gate), 1)
				w.beat(t, core.Heartbeat{Owner: owner})
				commit(t, gate)
				get(t, "the taker", taken)
			} else if err := w.endIn(t.Context(), taking); err != nil {
				t.Fatal(err)
			}
			before := w.count(t, "SELECT count(*) FROM {schema}.outbox_beats")
			late := beside(func() (bool, error) { return w.beatText(t.Context(), w.pool, c.beat, owner) })
			w.blocked(t, pid(taking), 1)
			commit(t, taking)
			told, written := get(t, "the beat", late), w.count(t, "SELECT count(*) FROM {schema}.outbox_beats")-before
			if told != c.told || (written == 1) != c.told || w.isEnded(t, owner) == c.found {
				t.Errorf("%s: the relay is told that it lives: %t, want %t; %d beats more; it was ended: %t", name, told, c.told,
					written, w.isEnded(t, owner))
			}
			w.exec(t, text)
			w.end(t)
		}
	})
}

// TestABeatInFlight: a relay whose beat has not committed yet is passed over. The beat's own lock does that, or the one
// of the foreign key; without both the relay is ended and its beat stands.
func TestABeatInFlight(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		for _, unsafe := range []bool{false, true} {
			text := statement("beat", w)
			if unsafe {
				text = swap(t, text, "FOR KEY SHARE", "")
				w.exec(t, "ALTER TABLE {schema}.outbox_beats DROP CONSTRAINT outbox_beats_relay")
			}
			owner := w.register(t)
			w.expire(t)
			beating := w.beginAs(t)
			if alive, err := w.beatText(t.Context(), beating, text, owner); err != nil || !alive {
				t.Fatalf("the beat: %t, %v", alive, err)
			}
			w.endExpired(t, false)
			commit(t, beating)
			w.endExpired(t, false)
			if w.isEnded(t, owner) != unsafe || !w.lives(t, owner) {
				t.Errorf("a relay that lives was ended: %t, want %t", w.isEnded(t, owner), unsafe)
			}
			w.end(t)
		}
	})
}

// TestAnEndingNeedsSnapshotsOfItsOwn: where one snapshot is for a whole transaction, the look behind the lock sees no
// more than the one before it. The function refuses, and the store asks for the level whatever the role says.
func TestAnEndingNeedsSnapshotsOfItsOwn(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, w *world) {
		text := w.ending(t)
		for _, level := range []pgx.TxIsoLevel{pgx.RepeatableRead, pgx.Serializable} {
			for _, unsafe := range []bool{false, true} {
				if unsafe {
					w.exec(t, swap(t, text, theGuard, "IF false THEN"))
				}
				owner := w.register(t)
				w.expire(t)
				taking := must(w.pool.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: level}))(t)
				do(t, taking, w.sql("SELECT FROM {schema}.outbox_relays"))
				w.beat(t, core.Heartbeat{Owner: owner})
				err := w.endIn(t.Context(), taking)
				if unsafe {
					commit(t, taking)
				} else if err == nil || !strings.Contains(err.Error(), "needs READ COMMITTED") {
					t.Errorf("%s: ended with %v", level, err)
				}
				_ = taking.Rollback(t.Context())
				if w.isEnded(t, owner) != unsafe || !w.lives(t, owner) {
					t.Errorf("%s: a relay that lives was ended: %t, want %t", level, w.isEnded(t, owner), unsafe)
				}
				w.exec(t, text)
				w.end(t)
			}
			store := pgstore.New(w.open(t, w.url, func(config *pgxpool.Config) {
				config.ConnConfig.RuntimeParams["default_transaction_isolation"] = string(level)
			}), w.schema)
			owner := w.register(t)
			w.expire(t)
			ended := must(store.EndExpired(t.Context(), core.EndExpired{Max: 9}))(t)
			if !slices.Equal(ended, []outbox.ID{owner.Relay}) {
				t.Errorf("the role says %s: ended %v", level, ended)
			}
		}
	})
}
