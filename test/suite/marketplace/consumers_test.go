package marketplace

import (
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/examples/marketplace/consumers"
	"github.com/posthaste-dev/posthaste/examples/marketplace/report"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/services"
)

// message is an event as a broker delivers it.
type message struct {
	attributes map[string]string
	body       []byte
}

// messages are the events of the outbox as a relay would publish them.
func messages(t *testing.T, pool *pgxpool.Pool) (all []message) {
	t.Helper()
	for _, text := range column[string](t, pool, `SELECT jsonb_build_object('event_id', id::text,
		'event_type', event_type, 'aggregate_type', aggregate_type, 'aggregate_id', aggregate_id,
		'outbox_seq', seq::text, 'body', payload_json::text)::text FROM outbox_events ORDER BY seq`) {
		attributes := map[string]string{}
		if err := json.Unmarshal([]byte(text), &attributes); err != nil {
			t.Fatal(err)
		}
		all = append(all, message{attributes: attributes, body: []byte(attributes["body"])})
		delete(attributes, "body")
	}
	return all
}

// deliver hands a message to a consumer.
func deliver(t *testing.T, c *consumer.Consumer, m message) consumer.Outcome {
	t.Helper()
	return c.Process(t.Context(), m.attributes, m.body, 1).Outcome
}

func logger(t *testing.T) *slog.Logger { return slog.New(slog.NewTextHandler(t.Output(), nil)) }

// memories are the compliance consumer with each of its inboxes.
var memories = map[string]func(t *testing.T, pool *pgxpool.Pool) (*consumer.Consumer, error){
	"postgres": func(t *testing.T, pool *pgxpool.Pool) (*consumer.Consumer, error) {
		t.Helper()
		return consumers.Compliance(pool, consumer.Config{Logger: logger(t)})
	},
	"redis": func(t *testing.T, pool *pgxpool.Pool) (*consumer.Consumer, error) {
		t.Helper()
		client := redis.NewClient(&redis.Options{Addr: services.Redis(), ContextTimeoutEnabled: true})
		t.Cleanup(func() { _ = client.Close() })
		guard, err := redisinbox.New(client, redisinbox.Config{Prefix: newPrefix(), Logger: logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		return consumers.ComplianceWithRedis(pool, guard, consumer.Config{Logger: logger(t)})
	},
}

func newPrefix() string { return "test-" + strings.ToLower(rand.Text()) }

// IN-5: pending goes to the admins, a decision to the store, with its reason and a link. Copies change nothing, not at
// the same time either, and other events are nothing to this consumer.
func TestComplianceTellsWhomItConcerns(t *testing.T) {
	t.Parallel()
	for name, newConsumer := range memories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, pool *pgxpool.Pool) {
				compliance, err := newConsumer(t, pool)
				if err != nil {
					t.Fatal(err)
				}
				s := newShop(t, pool)
				store := s.store()
				license := s.do("/licenses", `{"storeId": %q, "number": "L-7"}`, store).ID
				s.do("/licenses/"+license+"/reject", `{"reason": "the picture is blurred"}`)
				s.do("/licenses/"+license+"/resubmit", "")
				s.do("/licenses/"+license+"/verify", "")
				s.order()
				all := messages(t, pool)
				for _, m := range all {
					var copies sync.WaitGroup
					for range 4 {
						copies.Go(func() { deliver(t, compliance, m) })
					}
					copies.Wait()
					want := consumer.Duplicate
					if m.attributes["event_type"] != "license_status_changed" {
						want = consumer.Ignored
					}
					if got := deliver(t, compliance, m); got != want {
						t.Errorf("a copy of %s is %s, want %s", m.attributes["event_type"], got, want)
					}
				}
				got := column[string](t, pool, `SELECT concat_ws('|', type, audience, store_id, license_id, status, reason, `+
					`link, event_id) FROM notifications ORDER BY id`)
				want := []string{}
				for i, line := range []string{
					"admin|%s|%s|pending", "store|%s|%s|rejected|the picture is blurred", "admin|%s|%s|pending",
					"store|%s|%s|verified",
				} {
					want = append(want, fmt.Sprintf("compliance|"+line+"|/licenses/%s|%s", store, license, license,
						all[i].attributes["event_id"]))
				}
				if !reflect.DeepEqual(got, want) {
					t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
				}
			})
		})
	}
}

// A notice that could not be written leaves the event processable: nothing is marked.
func TestAFailedNoticeCanBeTriedAgain(t *testing.T) {
	t.Parallel()
	for name, newConsumer := range memories {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pool := newDatabase(t, pgtest.Servers()[0])
			compliance, err := newConsumer(t, pool)
			if err != nil {
				t.Fatal(err)
			}
			newShop(t, pool).license()
			m := messages(t, pool)[0]
			exec := func(statement string) {
				if _, err := pool.Exec(t.Context(), statement); err != nil {
					t.Fatal(err)
				}
			}
			exec(`ALTER TABLE notifications ADD CONSTRAINT closed CHECK (false)`)
			if got := deliver(t, compliance, m); got != consumer.Failed {
				t.Fatalf("a notice that cannot be written is %s", got)
			}
			exec(`ALTER TABLE notifications DROP CONSTRAINT closed`)
			if got := deliver(t, compliance, m); got != consumer.Handled {
				t.Errorf("the next try is %s", got)
			}
			if n := column[int](t, pool, `SELECT count(*) FROM notifications`); n[0] != 1 {
				t.Errorf("%d notices", n[0])
			}
		})
	}
}

// Whatever the order in which an order's events come, and however often, the read model ends as the shop is, and never
// goes back.
func TestTheReadModelNeverGoesBack(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, pool *pgxpool.Pool) {
		model, err := consumers.OrderReadModel(pool, consumer.Config{Logger: logger(t)})
		if err != nil {
			t.Fatal(err)
		}
		s := newShop(t, pool)
		turns := permutations([]int{0, 1, 2, 3}) // created, accepted, shipped, delivered
		for range turns {
			order := "/orders/" + s.order().ID
			for _, step := range []string{"/accept", "/ship", "/deliver"} {
				s.do(order+step, "")
			}
		}
		canceled, expired := s.order().ID, s.order().ID
		s.do("/orders/"+canceled+"/cancel", "")
		s.do("/orders/"+expired+"/expire", "")
		byOrder := map[string][]message{}
		for _, m := range messages(t, pool) {
			if strings.HasPrefix(m.attributes["event_type"], "order_") {
				byOrder[m.attributes["aggregate_id"]] = append(byOrder[m.attributes["aggregate_id"]], m)
			}
		}
		turns = append(turns, []int{1, 0}, []int{0, 1})
		for i, order := range slices.Sorted(maps.Keys(byOrder)) {
			newest := 0
			for _, position := range slices.Concat(turns[i], turns[i]) { // each comes twice
				deliver(t, model, byOrder[order][position])
				newest = max(newest, position+1)
				got := column[int](t, pool, `SELECT revision::int FROM order_read_model WHERE order_id = $1`, order)
				if len(got) != 1 || got[0] != newest {
					t.Fatalf("the order is at revision %v after %v, want %d", got, turns[i], newest)
				}
			}
		}
		found, err := report.Look(t.Context(), pool, pool)
		if err != nil {
			t.Fatal(err)
		}
		if found.Differ != 0 || found.Invented != 0 || found.Orders != 26 || found.InOrder != 2 {
			t.Errorf("%+v", found)
		}
	})
}

// permutations are all orders of some numbers.
func permutations(of []int) (all [][]int) {
	if len(of) == 0 {
		return [][]int{{}}
	}
	for i, first := range of {
		for _, rest := range permutations(slices.Delete(slices.Clone(of), i, i+1)) {
			all = append(all, append([]int{first}, rest...))
		}
	}
	return all
}

// The report finds what is wrong, each thing by itself: one that finds nothing would pass a marketplace that does
// nothing.
func TestTheReportFindsWhatIsWrong(t *testing.T) {
	t.Parallel()
	pool := newDatabase(t, pgtest.Servers()[0])
	s := newShop(t, pool)
	s.everything()
	compliance, err := consumers.Compliance(pool, consumer.Config{Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	model, err := consumers.OrderReadModel(pool, consumer.Config{Logger: logger(t)})
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range messages(t, pool) {
		deliver(t, compliance, m)
		deliver(t, model, m)
	}
	look := func() report.Report {
		found, err := report.Look(t.Context(), pool, pool)
		if err != nil {
			t.Fatal(err)
		}
		return found
	}
	if _, err := pool.Exec(t.Context(), `UPDATE outbox_events SET state = 6, published_at = now()`); err != nil {
		t.Fatal(err)
	}
	good := look()
	if !good.OK() || good.Orders != 4 || good.InOrder != 4 || good.Changes != 4 || good.ToAdmins != 2 ||
		good.ToStores != 2 {
		t.Fatalf("%+v", good)
	}
	for name, test := range map[string]struct {
		statement string
		want      func(*report.Report)
	}{
		"a lost notice": {`DELETE FROM notifications WHERE id = 1`, func(r *report.Report) { r.Missing, r.ToAdmins = 1, 1 }},
		"a double notice": {
			`INSERT INTO notifications (type, audience, store_id, license_id, status, reason, link, event_id) SELECT type, ` +
				`audience, store_id, license_id, status, reason, link, event_id FROM notifications WHERE id = 1`,
			func(r *report.Report) { r.Double, r.ToAdmins = 1, 3 },
		},
		"another audience": {`UPDATE notifications SET audience = 'store' WHERE id = 1`, func(r *report.Report) {
			r.Wrong, r.ToAdmins, r.ToStores = 1, 1, 3
		}},
		"no reason": {`UPDATE notifications SET reason = NULL WHERE status = 'rejected'`, func(r *report.Report) {
			r.Wrong = 1
		}},
		"no event": {`UPDATE notifications SET event_id = gen_random_uuid() WHERE id = 1`, func(r *report.Report) {
			r.Wrong, r.Missing = 1, 1
		}},
		"an old state": {
			`UPDATE order_read_model SET state = 'shipped', revision = 3 WHERE state = 'delivered'`, func(r *report.Report) {
				r.Differ, r.InOrder = 2, 2
			},
		},
		"a lost order": {`DELETE FROM order_read_model WHERE state = 'expired'`, func(r *report.Report) {
			r.Differ, r.InOrder = 1, 3
		}},
		"an order of none": {`INSERT INTO order_read_model (order_id) VALUES (gen_random_uuid())`, func(r *report.Report) {
			r.Invented = 1
		}},
		"a left-out state": {
			`UPDATE order_read_model SET applied = 2 WHERE state = 'canceled' OR state = 'delivered'`, func(r *report.Report) {
				r.InOrder = 2
			},
		},
	} {
		tables := []string{"notifications", "order_read_model"}
		for _, table := range tables {
			if _, err := pool.Exec(t.Context(), "CREATE TABLE kept_"+table+" AS SELECT * FROM "+table); err != nil {
				t.Fatal(err)
			}
		}
		if _, err := pool.Exec(t.Context(), test.statement); err != nil {
			t.Fatal(err)
		}
		want := good
		test.want(&want)
		if got := look(); got != want || got.OK() != (name == "a left-out state") {
			t.Errorf("%s: got %+v, want %+v", name, got, want)
		}
		for _, table := range tables {
			for _, statement := range []string{
				"DELETE FROM " + table, "INSERT INTO " + table + " OVERRIDING SYSTEM VALUE SELECT * FROM kept_" + table,
				"DROP TABLE kept_" + table,
			} {
				if _, err := pool.Exec(t.Context(), statement); err != nil {
					t.Fatalf("%s: %v", statement, err)
				}
			}
		}
	}
}
