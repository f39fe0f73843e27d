package pgstore_test

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"go.uber.org/goleak"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/pgstore"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(calm{m}) }

// calm waits for goroutines that were told to end: goleak itself looks for half a second, which may be too little on a
// busy machine.
type calm struct{ *testing.M }

func (c calm) Run() int {
	code := c.M.Run()
	began := time.Now()
	for goleak.Find() != nil { // that takes half a second
		if time.Since(began) > patience {
			break // and fail
		}
	}
	return code
}

const (
	// lease is so long that none ends, and no statement of the store is given up, because the machine stood still.
	lease = 30 * time.Minute
	// patience ends a wait that would never end; nothing needs nearly as long.
	patience = 2 * time.Minute
)

func env(name, otherwise string) string {
	if value := os.Getenv(name); value != "" {
		return value
	}
	return otherwise
}

func postgres18() string {
	return env("SERVICES_POSTGRES18_URL", "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable")
}

func postgres15() string {
	return env("SERVICES_POSTGRES15_URL", "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable")
}

func pgBouncer() string {
	return env("SERVICES_PGBOUNCER_URL", "postgres://postgres@127.0.0.1:16432/posthaste?sslmode=disable")
}

// A world is an outbox with its owner, and a store that has a relay's grants and nothing else.
type world struct {
	url    string
	schema string
	owner  *pgxpool.Pool
	role   string
	pool   *pgxpool.Pool // the store's
	store  *pgstore.Store
	beats  atomic.Int64 // the number of the last beat, of whichever relay
}

// onEach runs a test on every server.
func onEach(t *testing.T, test func(t *testing.T, w *world)) {
	t.Helper()
	for name, url := range map[string]string{"postgres18": postgres18(), "postgres15": postgres15()} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test(t, newWorld(t, url))
		})
	}
}

func newWorld(t testing.TB, url string) *world {
	t.Helper()
	w := &world{url: url}
	w.owner, w.schema = relaytest.Database(t, url)
	w.role = "relay_of_" + w.schema
	w.exec(t, "CREATE ROLE "+w.role+" LOGIN")
	t.Cleanup(func() {
		for _, statement := range []string{"DROP OWNED BY " + w.role, "DROP ROLE " + w.role} {
			if _, err := w.owner.Exec(context.Background(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	w.exec(t, "SELECT {schema}.outbox_grant('relay', $1)", w.role)
	w.pool = w.open(t, url, func(config *pgxpool.Config) { pgstore.Configure(config, lease) })
	w.store = pgstore.New(w.pool, w.schema)
	return w
}

// open connects as the relay's role.
func (w *world) open(t testing.TB, url string, change func(*pgxpool.Config)) *pgxpool.Pool {
	t.Helper()
	config := must(pgxpool.ParseConfig(url))(t)
	config.ConnConfig.User = w.role
	change(config)
	pool := must(pgxpool.NewWithConfig(t.Context(), config))(t)
	t.Cleanup(pool.Close)
	return pool
}

// must fails the test when there is an error.
func must[T any](value T, err error) func(testing.TB) T {
	return func(t testing.TB) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

func (w *world) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", `"`+w.schema+`"`)
}

func (w *world) exec(t testing.TB, statement string, args ...any) {
	t.Helper()
	if _, err := w.owner.Exec(t.Context(), w.sql(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

func (w *world) count(t testing.TB, query string, args ...any) (n int) {
	t.Helper()
	if err := w.owner.QueryRow(t.Context(), w.sql(query), args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return n
}

// rows reads a table as text, a line a row.
func (w *world) rows(t testing.TB, query string, args ...any) []string {
	t.Helper()
	rows, err := w.owner.Query(t.Context(), w.sql("SELECT r::text FROM ("+query+") r"), args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return must(pgx.CollectRows(rows, pgx.RowTo[string]))(t)
}

// begin opens a transaction of a producer, rolled back at the end of the test unless it was ended before.
func (w *world) begin(t testing.TB) pgx.Tx {
	t.Helper()
	tx := must(w.owner.Begin(t.Context()))(t)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// beginAs opens a transaction of the relay's role, which the store itself never does.
func (w *world) beginAs(t testing.TB) pgx.Tx {
	t.Helper()
	tx := must(w.pool.Begin(t.Context()))(t)
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

type execer interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// insert writes an event of an aggregate and returns its id and number.
func (w *world) insert(t testing.TB, in execer, aggregate, eventType string) (outbox.ID, int64) {
	t.Helper()
	id := outbox.NewID()
	var seq int64
	err := in.QueryRow(t.Context(), w.sql(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, `+
		`aggregate_id, payload_json)
		VALUES ($1, $2, 'order', $3, $4) RETURNING seq`), id.String(), eventType, aggregate, payload(id)).Scan(&seq)
	if err != nil {
		t.Fatal(err)
	}
	return id, seq
}

// add writes an event that is committed at once, moved to a state as the relay would.
func (w *world) add(t testing.TB, aggregate string, state core.State) outbox.ID {
	t.Helper()
	return w.addType(t, aggregate, "order_created", state)
}

func (w *world) addType(t testing.TB, aggregate, eventType string, state core.State) outbox.ID {
	t.Helper()
	id, _ := w.insert(t, w.owner, aggregate, eventType)
	if state != core.Ready {
		w.move(t, id, state)
	}
	return id
}

// move gives an event another state, whichever it has, as whoever does that by hand must: its held row is another one
// then, or none.
func (w *world) move(t testing.TB, id outbox.ID, state core.State) {
	t.Helper()
	w.exec(t, `DELETE FROM {schema}.outbox_held h USING {schema}.outbox_events e
		WHERE e.id = $1 AND h.lane = e.lane AND h.seq = e.seq`, id.String())
	w.exec(t, `UPDATE {schema}.outbox_events SET state = CASE WHEN $2::smallint IN (1, 2, 3, 4) THEN 1 ELSE $2 END,
		published_at = CASE WHEN $2 = 6 THEN now() END WHERE id = $1`, id.String(), int16(state))
	if held(state) {
		w.exec(t, `INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type,
			aggregate_id)
			SELECT lane, seq, $2::smallint, CASE $2 WHEN 1 THEN now() END, namespace, event_type, aggregate_type, aggregate_id
			  FROM {schema}.outbox_events WHERE id = $1`, id.String(), int16(state))
	}
}

// holdAll writes the held rows of events that were inserted as held. The kind is an expression over the event.
func (w *world) holdAll(t testing.TB, kind string) {
	t.Helper()
	w.exec(t, `INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
		SELECT lane, seq, k.kind, CASE k.kind WHEN 1 THEN now() END, namespace, event_type, aggregate_type, aggregate_id
		  FROM {schema}.outbox_events e CROSS JOIN LATERAL (SELECT `+kind+` AS kind) k
		 WHERE state = 1 AND NOT EXISTS (SELECT FROM {schema}.outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq)`)
}

// held tells that an event in this state has a row in outbox_held.
func held(state core.State) bool { return state >= core.Retrying && state <= core.DeadBlocking }

// heldAt sets when a retry is due, and since when a row is held as it is, to an expression.
func (w *world) heldAt(t testing.TB, id outbox.ID, expression string) {
	t.Helper()
	w.exec(t, `UPDATE {schema}.outbox_held h SET due = CASE kind WHEN 1 THEN `+expression+` END, since = `+expression+`
		FROM {schema}.outbox_events e WHERE e.id = $1 AND h.lane = e.lane AND h.seq = e.seq`, id.String())
}

func payload(id outbox.ID) string {
	return fmt.Sprintf(`{"version":1,  "eventId":%q,"eventId":%q,"data":{"ü":1.50}}`, id, id)
}

func (w *world) lane(t testing.TB, aggregate string) int16 {
	t.Helper()
	return int16(w.count(t, "SELECT {schema}.outbox_lane('default', 'order', $1)", aggregate))
}

// state is where an event stands: how it is held, or else its own state. More than 100: the two tables do not agree.
func (w *world) state(t testing.TB, id outbox.ID) core.State {
	t.Helper()
	return core.State(w.count(t, `SELECT CASE WHEN (e.state = 1) = (h.kind IS NOT NULL) THEN coalesce(h.kind, e.state)
		ELSE 100 + e.state END FROM {schema}.outbox_events e
		LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq WHERE e.id = $1`, id.String()))
}

// found is the row as a reader finds it.
func (w *world) found(t testing.TB, id outbox.ID) (found core.Found) {
	t.Helper()
	found.ID = id
	query := w.sql(`SELECT e.lane, e.seq, coalesce(h.version, 0) FROM {schema}.outbox_events e
		LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq WHERE e.id = $1`)
	if err := w.owner.QueryRow(t.Context(), query, id.String()).Scan(&found.Lane, &found.Seq, &found.Version); err != nil {
		t.Fatal(err)
	}
	return found
}

// allLanes are the lanes of the layout.
func allLanes() []int16 {
	lanes := make([]int16, 64)
	for i := range lanes {
		lanes[i] = int16(i) + 1
	}
	return lanes
}

// A holder is a relay that was registered, and what it took in one acquisition.
type holder struct {
	core.Owner
	tenure outbox.ID // the token of that acquisition
	taken  []core.Acquired
}

// lane is the first that was taken.
func (h holder) lane() int16 { return h.taken[0].Lane }

func (h holder) lanes() (lanes []int16) {
	for _, taken := range h.taken {
		lanes = append(lanes, taken.Lane)
	}
	return lanes
}

// at is how far the holder is in one of its lanes.
func (h holder) at(lane int16, floor int64) core.Progress {
	return core.Progress{Tenure: core.Tenure{Lane: lane, Token: h.tenure}, Floor: floor}
}

// newOwner is one start of a relay that the database does not know.
func newOwner() core.Owner { return core.Owner{Relay: outbox.NewID(), Token: outbox.NewID()} }

// register makes an owner, with its first beat.
func (w *world) register(t testing.TB, types ...string) core.Owner {
	t.Helper()
	owner := newOwner()
	w.beat(t, core.Heartbeat{Owner: owner, Register: &core.Registration{Name: "r", Types: types, Topics: types}})
	return owner
}

// beat sends a beat, with the next number and a lease where it says none.
func (w *world) beat(t testing.TB, beat core.Heartbeat) core.HeartbeatAnswer {
	t.Helper()
	beat.Number, beat.Lease = w.beats.Add(1), cmp.Or(beat.Lease, lease)
	return must(w.store.Heartbeat(t.Context(), beat))(t)
}

// take acquires those of the lanes that are free, at most so many.
func (w *world) take(t testing.TB, owner core.Owner, most int, lanes ...int16) holder {
	t.Helper()
	h := holder{Owner: owner, tenure: outbox.NewID()}
	h.taken = must(w.store.Acquire(t.Context(), core.Acquire{
		Owner: owner, Tenure: h.tenure, Lanes: lanes, Max: most,
	}))(t).Lanes
	return h
}

// acquire takes every lane that is free, for a new relay.
func (w *world) acquire(t testing.TB) holder {
	t.Helper()
	return w.take(t, w.register(t), 64, allLanes()...)
}

// hold takes the lanes of aggregates, for a new relay.
func (w *world) hold(t testing.TB, aggregates ...string) holder {
	t.Helper()
	var lanes []int16
	for _, aggregate := range aggregates {
		lanes = append(lanes, w.lane(t, aggregate))
	}
	h := w.take(t, w.register(t), len(lanes), lanes...)
	if len(h.taken) != len(lanes) {
		t.Fatalf("took %v of lanes %v", h.taken, lanes)
	}
	return h
}

// expire lets every relay have beaten last a lease ago, or those named.
func (w *world) expire(t testing.TB, owners ...core.Owner) {
	t.Helper()
	relays := []string{}
	for _, owner := range owners {
		relays = append(relays, owner.Relay.String())
	}
	w.exec(t, "UPDATE {schema}.outbox_beats SET until = clock_timestamp() - interval '1 hour' "+
		"WHERE relay = ANY ($1::text[]::uuid[]) OR $1 = '{}'", relays)
}

// end lets relays expire, and ends those that have.
func (w *world) end(t testing.TB, owners ...core.Owner) (ended []outbox.ID) {
	t.Helper()
	w.expire(t, owners...)
	return w.endExpired(t, false)
}

func (w *world) endExpired(t testing.TB, away bool) (ended []outbox.ID) {
	t.Helper()
	return must(w.store.EndExpired(t.Context(), core.EndExpired{Max: 9, Away: away}))(t)
}

// endIn runs the statement that ends relays inside a transaction, to keep it open.
func (w *world) endIn(ctx context.Context, tx pgx.Tx) error {
	_, err := tx.Exec(ctx, statement("end_expired", w), outbox.ID{}.String(), int32(9), false)
	return err
}

// isEnded tells whether the relay is no more.
func (w *world) isEnded(t testing.TB, owner core.Owner) bool {
	t.Helper()
	return w.count(t, "SELECT count(*) FROM {schema}.outbox_relays WHERE id = $1 AND ended_at IS NOT NULL",
		owner.Relay.String()) == 1
}

func (w *world) settle(t testing.TB, settle *core.Settle) core.SettleAnswer {
	t.Helper()
	answer, err := w.store.Settle(t.Context(), settle)
	if err != nil {
		t.Error(err)
	}
	return answer
}

// blocked waits until the number of sessions that wait for this backend is at least n.
func (w *world) blocked(t testing.TB, pid uint32, n int) {
	t.Helper()
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for began := time.Now(); ; <-look.C {
		waiting := w.count(t, "SELECT count(*) FROM pg_stat_activity WHERE $1 = ANY (pg_blocking_pids(pid))", int(pid))
		if waiting >= n {
			return
		}
		if time.Since(began) > patience {
			t.Fatalf("%d sessions wait for backend %d, want %d", waiting, pid, n)
		}
	}
}

// receive waits for an answer.
func receive[T any](t testing.TB, what string, from <-chan T) T {
	t.Helper()
	select {
	case answer := <-from:
		return answer
	case <-time.After(patience):
		t.Fatalf("%s: no answer in %s", what, patience)
		panic("unreachable")
	}
}

func ids(events []core.Event) []outbox.ID {
	var list []outbox.ID
	for _, event := range events {
		list = append(list, event.ID)
	}
	return list
}

func statement(file string, w *world) string { return pgstore.Statement(file, w.schema) }
