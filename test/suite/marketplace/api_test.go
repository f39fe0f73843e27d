package marketplace

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/examples/marketplace/api"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// shop is the API on a database of its own.
type shop struct {
	t    *testing.T
	pool *pgxpool.Pool
	http http.Handler
}

type answer struct {
	Status   int      `json:"-"`
	ID       string   `json:"id"`
	State    string   `json:"state"`
	Revision int64    `json:"revision"`
	LineIDs  []string `json:"lineIds"`
	EventIDs []string `json:"eventIds"`
	Error    string   `json:"error"`
}

func newShop(t *testing.T, pool *pgxpool.Pool) *shop {
	t.Helper()
	bell := outbox.NewDoorbell(outbox.RingPgx(pool, outbox.DefaultSchema))
	t.Cleanup(bell.Close)
	return &shop{t: t, pool: pool, http: api.New(pool, bell, slog.New(slog.NewTextHandler(t.Output(), nil)))}
}

// call makes a request, whatever comes of it.
func (s *shop) call(method, path, body string) (said answer) {
	s.t.Helper()
	recorder := httptest.NewRecorder()
	s.http.ServeHTTP(recorder, httptest.NewRequestWithContext(s.t.Context(), method, path, strings.NewReader(body)))
	if err := json.Unmarshal(recorder.Body.Bytes(), &said); err != nil {
		s.t.Errorf("%s %s: %s: %v", method, path, recorder.Body, err)
	}
	said.Status = recorder.Code
	return said
}

// do posts something that must succeed.
func (s *shop) do(path, body string, args ...any) answer {
	s.t.Helper()
	said := s.call(http.MethodPost, path, fmt.Sprintf(body, args...))
	if said.Status/100 != 2 {
		s.t.Fatalf("POST %s: %+v", path, said)
	}
	return said
}

func (s *shop) store() string { return s.do("/stores", `{"name": "a store"}`).ID }

func (s *shop) order() answer {
	return s.do("/orders", `{"buyerStoreId": %q, "vendorStoreId": %q, "currency": "EUR",
		"lines": [{"productId": "bread", "quantity": 2, "unitPriceCents": 300},
			{"productId": "salt", "quantity": 1, "unitPriceCents": 90}]}`, s.store(), s.store())
}

func (s *shop) license() string {
	return s.do("/licenses", `{"storeId": %q, "number": "L-1"}`, s.store()).ID
}

func (s *shop) ad() string {
	return s.do("/ads", `{"storeId": %q, "title": "Fresh bread", "dailyBudgetCents": 500}`, s.store()).ID
}

// types are those of the events that were emitted, oldest first.
func (s *shop) types() []string {
	s.t.Helper()
	return column[string](s.t, s.pool, "SELECT event_type FROM outbox_events ORDER BY seq")
}

// everything does everything that one can do.
func (s *shop) everything() {
	s.t.Helper()
	sold := s.order()
	path := "/orders/" + sold.ID
	s.do(path+"/accept", "")
	for _, line := range sold.LineIDs {
		s.do(path+"/lines/"+line+"/pack", "")
	}
	s.do(path+"/payments", `{"method": "card"}`)
	s.do(path+"/ship", "")
	s.do(path+"/deliver", "")
	s.do(path+"/payouts", "")
	atTheDoor := "/orders/" + s.order().ID
	for _, step := range []string{"/accept", "/ship", "/deliver"} {
		s.do(atTheDoor+step, "")
	}
	s.do(atTheDoor+"/payments", `{"method": "cash"}`)
	s.do("/orders/"+s.order().ID+"/cancel", `{"reason": "out of stock"}`)
	s.do("/orders/"+s.order().ID+"/expire", "")

	license := "/licenses/" + s.license()
	s.do(license+"/reject", `{"reason": "the picture is blurred"}`)
	s.do(license+"/resubmit", "")
	s.do(license+"/verify", "")

	s.do("/media", `{"storeId": %q, "kind": "photo", "contentType": "image/jpeg", "bytes": 1000}`, s.store())

	ad := "/ads/" + s.ad()
	if said := s.call(http.MethodPatch, ad,
		`{"title": "Fresh bread, still warm", "dailyBudgetCents": 700}`); said.Status != http.StatusOK {
		s.t.Fatalf("%+v", said)
	}
	for _, step := range []string{"/pause", "/activate", "/expire"} {
		s.do(ad+step, "")
	}
	s.do(ad+"/rollups", `{"day": "2026-01-31", "impressions": 100, "clicks": 5, "spentCents": 40}`)
}

// The registry is walked: each of its types is emitted by an action of the API, keeps its contract as it is stored, and
// is about what the answer said.
func TestEveryEventTypeIsEmittedByAnAction(t *testing.T) {
	t.Parallel()
	registry, err := events.Registry(events.Topics{})
	if err != nil {
		t.Fatal(err)
	}
	onEach(t, func(t *testing.T, pool *pgxpool.Pool) {
		s := newShop(t, pool)
		s.everything()
		emitted := s.types()
		for _, eventType := range registry.Types() {
			if !slices.Contains(emitted, eventType) {
				t.Errorf("no action emits %s", eventType)
			}
		}
		for _, row := range column[map[string]any](t, pool, `SELECT jsonb_build_object('id', id, 'type', event_type, `+
			`'aggregate', aggregate_type,
			'aggregateId', aggregate_id, 'payload', payload_json::text) FROM outbox_events`) {
			id, err := outbox.ParseID(row["id"].(string))
			if err != nil {
				t.Fatal(err)
			}
			_, err = registry.Check(outbox.Stored{
				ID: id, EventType: row["type"].(string), AggregateType: row["aggregate"].(string),
				AggregateID: row["aggregateId"].(string),
				Payload:     []byte(row["payload"].(string)),
			})
			if err != nil {
				t.Errorf("%s: %v", row["type"], err)
			}
		}
	})
}

// A change and its events are there together, or neither is: here the events cannot be written.
func TestAChangeWithoutItsEventIsNone(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, pool *pgxpool.Pool) {
		s := newShop(t, pool)
		order, license, ad, store := s.order(), s.license(), s.ad(), s.store()
		const everything = `SELECT concat((SELECT count(*) FROM orders), 
			(SELECT string_agg(state, ',' ORDER BY id) FROM orders), (SELECT count(*) FROM order_lines),
			(SELECT count(*) FROM ledger_entries), (SELECT string_agg(status, ',' ORDER BY id) FROM licenses), 
			(SELECT string_agg(state || title, ',' ORDER BY id) FROM ads),
			(SELECT count(*) FROM media), (SELECT count(*) FROM ad_rollups))`
		before := column[string](t, pool, everything)
		if _, err := pool.Exec(t.Context(),
			`ALTER TABLE outbox_events ADD CONSTRAINT closed CHECK (false) NOT VALID`); err != nil {
			t.Fatal(err)
		}
		for path, body := range map[string]string{
			"/orders": fmt.Sprintf(`{"buyerStoreId": %q, "vendorStoreId": %[1]q, "currency": "EUR", `+
				`"lines": [{"productId": "p", "quantity": 1}]}`, store),
			"/orders/" + order.ID + "/accept": "", "/orders/" + order.ID + "/cancel": "", "/orders/" + order.ID + "/expire": "",
			"/licenses": fmt.Sprintf(`{"storeId": %q, "number": "L-2"}`, store), "/licenses/" + license + "/verify": "",
			"/licenses/" + license + "/reject": `{"reason": "no"}`,
			"/media": fmt.Sprintf(`{"storeId": %q, "kind": "photo", "contentType": "image/jpeg", `+
				`"bytes": 1}`, store),
			"/ads": fmt.Sprintf(`{"storeId": %q, "title": "t"}`, store), "/ads/" + ad + "/pause": "",
			"/ads/" + ad + "/expire": "", "/ads/" + ad + "/rollups": `{"day": "2026-01-31"}`,
		} {
			if said := s.call(http.MethodPost, path, body); said.Status != http.StatusServiceUnavailable {
				t.Errorf("%s: %+v", path, said)
			}
		}
		if after := column[string](t, pool, everything); !reflect.DeepEqual(before, after) {
			t.Errorf("%s became %s", before, after)
		}
	})
}

// What is refused says so, and neither changes nor emits anything.
func TestRejections(t *testing.T) {
	t.Parallel()
	s := newShop(t, newDatabase(t, pgtest.Servers()[0]))
	order, license, ad, store := "/orders/"+s.order().ID, "/licenses/"+s.license(), "/ads/"+s.ad(), s.store()
	shipped := s.order()
	s.do("/orders/"+shipped.ID+"/accept", "")
	s.do("/orders/"+shipped.ID+"/payments", `{"method": "card"}`)
	s.do("/orders/"+shipped.ID+"/ship", "")
	s.do(ad+"/rollups", `{"day": "2026-01-31", "clicks": 5}`)
	before := len(s.types())
	const nobody = "019b0000-0000-7000-8000-000000000000"
	line := `{"productId": "p", "quantity": 1, "unitPriceCents": 1}`
	newOrder := `{"buyerStoreId": "` + store + `", "vendorStoreId": "` + store + `", "currency": "EUR", "lines": [%s]}`
	for _, test := range []struct {
		path, body string
		want       int
	}{
		{"/stores", `{}`, http.StatusBadRequest},
		{"/stores", `{"name": `, http.StatusBadRequest},
		{"/stores", `{"nome": "a"}`, http.StatusBadRequest},
		{"/stores", `{"name": "` + strings.Repeat("x", 501) + `"}`, http.StatusBadRequest},
		{"/stores", `{"name": "` + strings.Repeat("x", 70_000) + `"}`, http.StatusRequestEntityTooLarge},
		{"/orders", fmt.Sprintf(newOrder, ""), http.StatusBadRequest},
		{"/orders", fmt.Sprintf(newOrder, strings.TrimSuffix(strings.Repeat(line+",", 101), ",")), http.StatusBadRequest},
		{"/orders", fmt.Sprintf(newOrder, `{"productId": "p", "quantity": 0}`), http.StatusBadRequest},
		{"/orders", fmt.Sprintf(newOrder, `{"productId": "", "quantity": 1}`), http.StatusBadRequest},
		{"/orders", fmt.Sprintf(newOrder, `{"productId": "p", "quantity": 1, "unitPriceCents": -1}`), http.StatusBadRequest},
		{"/orders", strings.ReplaceAll(fmt.Sprintf(newOrder, line), store, nobody), http.StatusNotFound},
		{"/orders/" + nobody + "/accept", "", http.StatusNotFound},
		{"/orders/1/accept", "", http.StatusNotFound},
		{order + "/ship", "", http.StatusConflict},
		{order + "/deliver", "", http.StatusConflict},
		{order + "/payments", `{"method": "card"}`, http.StatusConflict},
		{order + "/payments", `{"method": "shells"}`, http.StatusBadRequest},
		{order + "/payouts", "", http.StatusConflict},
		{order + "/lines/" + nobody + "/pack", "", http.StatusConflict}, // the order is not accepted
		{"/orders/" + shipped.ID + "/payments", `{"method": "card"}`, http.StatusConflict},
		{"/orders/" + shipped.ID + "/cancel", "", http.StatusConflict},
		{"/orders/" + shipped.ID + "/expire", "", http.StatusConflict},
		{license + "/reject", "", http.StatusBadRequest},
		{license + "/resubmit", "", http.StatusConflict},
		{"/licenses/" + nobody + "/verify", "", http.StatusNotFound},
		{"/media", `{"storeId": "` + store + `", "kind": "photo", "contentType": "image/jpeg"}`, http.StatusBadRequest},
		{"/ads", `{"storeId": "` + store + `", "title": "t", "dailyBudgetCents": -1}`, http.StatusBadRequest},
		{ad + "/activate", "", http.StatusConflict},
		{ad + "/rollups", `{"day": "yesterday"}`, http.StatusBadRequest},
		{ad + "/rollups", `{"day": "2026-01-31", "clicks": 6}`, http.StatusConflict},
		{"/ads/" + nobody + "/rollups", `{"day": "2026-01-31"}`, http.StatusNotFound},
	} {
		if said := s.call(http.MethodPost, test.path, test.body); said.Status != test.want || said.Error == "" {
			t.Errorf("%s %.100s: %+v, want %d", test.path, test.body, said, test.want)
		}
	}
	if said := s.call(http.MethodPost, ad+"/rollups", `{"day": "2026-01-31", "clicks": 5}`); said.Status !=
		http.StatusOK || len(said.EventIDs) != 0 {
		t.Errorf("the same figures again: %+v", said)
	}
	if emitted := s.types()[before:]; len(emitted) != 0 {
		t.Errorf("emitted %v", emitted)
	}
	if said := s.call(http.MethodGet, order, ""); said.State != "pending" || said.Revision != 1 {
		t.Errorf("%+v", said)
	}
}

// Many hands at the same orders: the events of each are in the order of its changes, and none is missing.
func TestTheEventsOfAnOrderAreInTheOrderOfItsChanges(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, pool *pgxpool.Pool) {
		s := newShop(t, pool)
		var orders []string
		for range 5 {
			orders = append(orders, s.order().ID)
		}
		server := httptest.NewServer(s.http)
		t.Cleanup(server.Close)
		var hands sync.WaitGroup
		for hand := range 6 {
			hands.Go(func() {
				for round := range 5 {
					for _, order := range orders {
						step := []string{"accept", "ship", "deliver", "cancel"}[(hand+round)%4]
						response, err := http.Post(server.URL+"/orders/"+order+"/"+step, "", nil)
						if err != nil {
							t.Error(err)
							return
						}
						_, _ = io.Copy(io.Discard, response.Body)
						_ = response.Body.Close()
					}
				}
			})
		}
		hands.Wait()
		for _, order := range orders {
			revisions := column[int64](t, pool, `SELECT coalesce((payload_json #>> '{data,revision}')::bigint, 1) 
				FROM outbox_events
				WHERE aggregate_id = $1 AND event_type IN ('order_created', 'order_state_changed', 'order_canceled') ORDER BY seq`,
				order)
			for i, revision := range revisions {
				if revision != int64(i+1) {
					t.Errorf("the revisions of %s are %v", order, revisions)
					break
				}
			}
			if now := column[int64](t, pool, `SELECT revision FROM orders WHERE id = $1`, order); now[0] !=
				int64(len(revisions)) || now[0] < 2 {
				t.Errorf("order %s is at revision %d, and has %d events", order, now[0], len(revisions))
			}
		}
	})
}

// Two hands that want the same at the same moment: one of them does it, and the other is told that it is done.
func TestTheSecondHandIsTold(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, pool *pgxpool.Pool) {
		s := newShop(t, pool)
		order := s.order().ID
		tx, err := pool.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer tx.Rollback(t.Context())
		if _, err := tx.Exec(t.Context(), `SELECT FROM orders WHERE id = $1 FOR UPDATE`, order); err != nil {
			t.Fatal(err)
		}
		answers := make(chan answer, 2)
		for range cap(answers) {
			go func() { answers <- s.call(http.MethodPost, "/orders/"+order+"/accept", "") }()
		}
		err = eventually.Within(t.Context(), eventually.Patience, "both wait", func() (bool, error) {
			var waiting int
			err := pool.QueryRow(t.Context(),
				`SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`).Scan(
				&waiting)
			return waiting == cap(answers), err
		})
		if err != nil {
			t.Fatal(err)
		}
		if err := tx.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		one, other := eventually.Receive(t, "an answer", answers), eventually.Receive(t, "the other answer", answers)
		if one.Status+other.Status != http.StatusOK+http.StatusConflict {
			t.Errorf("the answers are %+v and %+v", one, other)
		}
		if emitted := s.types(); !slices.Equal(emitted, []string{
			"order_created", "notification_requested", "order_state_changed",
		}) {
			t.Errorf("emitted %v", emitted)
		}
	})
}
