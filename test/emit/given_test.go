package emit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/pgtest"
)

// occurred is when everything happens here, so that a stored payload can be foretold to the byte.
var occurred = time.Date(2026, 3, 1, 12, 30, 15, 123456000, time.UTC)

// given is an event as a test describes it. Unlike an outbox.Event it can be read, so the same one can
// go through the library, through outbox_emit and through a faulty copy of either.
type given struct {
	contract    outbox.Contract
	payload     any // a json.RawMessage is the data itself
	id          outbox.ID
	aggregateID string
	tenant      string
	key         string
	at          time.Time
	actor       *outbox.Actor
	headers     map[string]string
	unmade      bool // an Event that no contract made
}

func orderCreated(data string) given {
	return given{
		contract:    outbox.Contract{Type: "order_created", Aggregate: "order", Topic: "orders"},
		payload:     json.RawMessage(data),
		aggregateID: "order-1",
		at:          occurred,
	}
}

func (g given) withKey(key string) given {
	g.key = key
	return g
}

func (g given) of(tenant string) given {
	g.tenant = tenant
	return g
}

func (g given) event() outbox.Event {
	var event outbox.Event
	if !g.unmade {
		event = outbox.Define[any](g.contract).New(g.aggregateID, g.payload)
	}
	event.ID, event.TenantID, event.DedupeKey = g.id, g.tenant, g.key
	event.OccurredAt, event.Actor, event.Headers = g.at, g.actor, g.headers
	return event
}

func events(all []given) []outbox.Event {
	made := make([]outbox.Event, len(all))
	for i, g := range all {
		made[i] = g.event()
	}
	return made
}

// data is what the payload must be stored as, found without the library.
func (g given) data() []byte {
	if raw, ok := g.payload.(json.RawMessage); ok {
		return raw
	}
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(g.payload); err != nil {
		return nil
	}
	return bytes.TrimSuffix(buffer.Bytes(), []byte("\n"))
}

// envelope is the stored payload that this event must have, found without the library.
func (g given) envelope(id string) string {
	version := max(g.contract.Version, 1)
	text := fmt.Sprintf(`{"version":%d,"eventId":"%s","occurredAt":"%s"`, version, id, g.at.UTC().Format("2006-01-02T15:04:05.000000Z"))
	if g.actor != nil {
		actor, _ := json.Marshal(g.actor)
		text += `,"actor":` + string(actor)
	}
	return text + `,"data":` + string(g.data()) + `}`
}

// emitter is the emit side: the library's, or one with a bug in it.
type emitter func(ctx context.Context, tx pgx.Tx, schema string, all []given) ([]outbox.Receipt, error)

func library(ctx context.Context, tx pgx.Tx, schema string, all []given) ([]outbox.Receipt, error) {
	return outbox.Emit(ctx, outbox.InSchema(tx, schema), events(all)...)
}

// outboxEmit is the emit side of other languages, one call an event.
func outboxEmit(ctx context.Context, tx pgx.Tx, schema string, all []given) ([]outbox.Receipt, error) {
	receipts := make([]outbox.Receipt, len(all))
	for i, g := range all {
		var id string
		err := tx.QueryRow(ctx, `SELECT id::text, created FROM "`+schema+`".outbox_emit($1::text, $2::text, $3::text, $4::text::json,
			version => $5::text::integer, namespace => $6::text, tenant_id => $7::text, dedupe_key => $8::text,
			actor => $9::text::json, headers => $10::text::json, occurred_at => $11::text::timestamptz, event_id => $12::text::uuid)`,
			g.contract.Type, g.contract.Aggregate, g.aggregateID, string(g.data()),
			fmt.Sprint(or(g.contract.Version, 1)), or(g.contract.Namespace, outbox.DefaultNamespace), orNull(g.tenant), orNull(g.key),
			jsonOrNull(g.actor != nil, g.actor), jsonOrNull(g.headers != nil, g.headers), g.timestamp(), idOrNull(g.id),
		).Scan(&id, &receipts[i].Created)
		if err != nil {
			return nil, fmt.Errorf("outbox_emit: %w", err)
		}
		if receipts[i].ID, err = outbox.ParseID(id); err != nil {
			return nil, err
		}
	}
	return receipts, nil
}

func or[T comparable](value, otherwise T) T {
	var zero T
	if value == zero {
		return otherwise
	}
	return value
}

func orNull(text string) any {
	if text == "" {
		return nil
	}
	return text
}

func idOrNull(id outbox.ID) any {
	if id == (outbox.ID{}) {
		return nil
	}
	return id.String()
}

func jsonOrNull(given bool, value any) any {
	if !given {
		return nil
	}
	text, _ := json.Marshal(value)
	return string(text)
}

// timestamp writes the time in PostgreSQL's own form, which has years before the first.
func (g given) timestamp() any {
	at := g.at.UTC()
	switch {
	case at.IsZero():
		return nil
	case at.Year() < 1:
		return fmt.Sprintf("%04d-%s BC", 1-at.Year(), at.Format("01-02T15:04:05.000000Z"))
	}
	return fmt.Sprintf("%04d-%s", at.Year(), at.Format("01-02T15:04:05.000000Z"))
}

// place is where checks run: a fresh schema with a table of the application's own beside the outbox.
type place struct {
	*pgtest.DB
	pool *pgxpool.Pool // counts statements; see counting
}

func newPlace(t testing.TB, db *pgtest.DB) place {
	t.Helper()
	db.Exec(t, "CREATE TABLE {schema}.orders (id text PRIMARY KEY, note text NOT NULL DEFAULT '')")
	config, err := pgxpool.ParseConfig(db.URL)
	if err != nil {
		t.Fatal(err)
	}
	config.ConnConfig.RuntimeParams["search_path"] = ""
	config.ConnConfig.RuntimeParams["synchronous_commit"] = "off" // nothing here crashes the server
	config.ConnConfig.Tracer = statementCounter{}
	config.MaxConns = 40
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	return place{DB: db, pool: pool}
}

// onEach runs a test against every server, each in a fresh place.
func onEach(t *testing.T, test func(t *testing.T, p place)) {
	t.Helper()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) { test(t, newPlace(t, db)) })
}

func (p place) begin(t testing.TB) pgx.Tx {
	t.Helper()
	tx, err := p.pool.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback(context.Background()) })
	return tx
}

// order writes a business row.
func (p place) order(ctx context.Context, tx pgx.Tx, id string) error {
	_, err := tx.Exec(ctx, p.SQL("INSERT INTO {schema}.orders (id) VALUES ($1)"), id)
	return err
}

func (p place) mustOrder(t testing.TB, tx pgx.Tx, id string) {
	t.Helper()
	if err := p.order(t.Context(), tx, id); err != nil {
		t.Fatal(err)
	}
}

// mustEmit emits through the library.
func (p place) mustEmit(t testing.TB, tx pgx.Tx, all ...given) []outbox.Receipt {
	t.Helper()
	receipts, err := library(t.Context(), tx, p.Schema, all)
	if err != nil {
		t.Fatal(err)
	}
	return receipts
}

func mustCommit(t testing.TB, tx pgx.Tx) {
	t.Helper()
	if err := tx.Commit(t.Context()); err != nil {
		t.Fatalf("commit: %v", err)
	}
}

// wantRows compares the numbers of business rows, events and dedupe keys.
func (p place) wantRows(t testing.TB, orders, events, keys int) {
	t.Helper()
	for _, want := range []struct {
		table string
		rows  int
	}{{"orders", orders}, {"outbox_events", events}, {"outbox_dedupe", keys}} {
		if got := p.Count(t, "SELECT count(*) FROM {schema}."+want.table); got != want.rows {
			t.Errorf("%s has %d rows, want %d", want.table, got, want.rows)
		}
	}
}

// clear removes everything, on the way that the tables allow.
func (p place) clear(t testing.TB) {
	t.Helper()
	p.Exec(t, "UPDATE {schema}.outbox_events SET state = 7")
	for _, table := range []string{"outbox_events", "outbox_dedupe", "orders"} {
		p.Exec(t, "DELETE FROM {schema}."+table)
	}
}

type counterKey struct{}

// counting returns a context that counts the statements sent with it.
func counting(ctx context.Context) (context.Context, *atomic.Int64) {
	n := new(atomic.Int64)
	return context.WithValue(ctx, counterKey{}, n), n
}

type statementCounter struct{}

func (statementCounter) TraceQueryStart(ctx context.Context, _ *pgx.Conn, _ pgx.TraceQueryStartData) context.Context {
	if n, ok := ctx.Value(counterKey{}).(*atomic.Int64); ok {
		n.Add(1)
	}
	return ctx
}

func (statementCounter) TraceQueryEnd(context.Context, *pgx.Conn, pgx.TraceQueryEndData) {}
