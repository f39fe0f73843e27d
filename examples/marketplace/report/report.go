// Package report compares what the shop has done with what its consumers have made of it.
package report

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
)

// A Report is how the marketplace stands.
type Report struct {
	Orders    int // orders of the shop
	Differ    int // of them, those that the read model does not have, or has otherwise
	Invented  int // orders that only the read model has
	InOrder   int // orders of the read model to which every change was applied, one after the other
	Changes   int // events about licences
	ToAdmins  int // notices to admins
	ToStores  int // notices to stores
	Missing   int // events about licences without a notice
	Double    int // notices beyond the first of an event
	Wrong     int // notices to the wrong audience, or not as the event says
	Emitted   int // events of every type
	Published int // of them, those that the broker has
}

// Drained tells whether everything that was emitted has come through.
func (r *Report) Drained() bool { return r.Left() == 0 }

// Left is how much has not come through.
func (r *Report) Left() int { return r.Emitted - r.Published + r.Missing + r.Differ }

// OK tells whether there is something, it has come through, and nothing is there twice or was never so.
func (r *Report) OK() bool {
	return r.Emitted > 0 && r.Drained() && r.Double == 0 && r.Wrong == 0 && r.Invented == 0
}

// Print writes the report for people, and a last line of figures.
func (r *Report) Print(out io.Writer) error {
	_, err := fmt.Fprintf(out, `  outbox      %d events emitted, %d published
  notices     %d for %d changes of licences: %d to admins, %d to stores; %d missing, %d double, %d wrong
  read model  %d of %d orders are as the shop has them; %d had all their changes applied in order
marketplace orders=%d emitted=%d published=%d changes=%d notices=%d missing=%d double=%d wrong=%d differ=%d `+
		`invented=%d in_order=%d drained=%t ok=%t
`, r.Emitted, r.Published,
		r.ToAdmins+r.ToStores, r.Changes, r.ToAdmins, r.ToStores, r.Missing, r.Double, r.Wrong,
		r.Orders-r.Differ, r.Orders, r.InOrder,
		r.Orders, r.Emitted, r.Published, r.Changes, r.ToAdmins+r.ToStores, r.Missing, r.Double, r.Wrong, r.Differ,
		r.Invented, r.InOrder, r.Drained(), r.OK())
	return err //nolint:wrapcheck // the writer's own
}

// Look reads both databases, which may be the same one. The consumers' comes first: what it shows, the shop must have.
func Look(ctx context.Context, shop, worker *pgxpool.Pool) (r Report, err error) {
	modelled, err := rows[orderRow](ctx, worker, `SELECT order_id::text, concat_ws(' ', buyer_store_id, `+
		`vendor_store_id, currency, total_cents, state, revision),
		coalesce(applied = revision, false) FROM order_read_model`)
	if err != nil {
		return r, err
	}
	notices, err := rows[notice](ctx, worker, `SELECT event_id::text, audience, concat_ws(' ', license_id, store_id, `+
		`status, reason, link)
		FROM notifications WHERE type = 'compliance'`)
	if err != nil {
		return r, err
	}
	placed, err := rows[orderRow](ctx, shop, `SELECT id::text, concat_ws(' ', buyer_store_id, vendor_store_id, `+
		`currency, total_cents, state, revision),
		false FROM orders`)
	if err != nil {
		return r, err
	}
	changes, err := rows[change](ctx, shop, `SELECT id::text, payload_json #>> '{data,status}', 
		concat_ws(' ', payload_json #>> '{data,licenseId}',
		payload_json #>> '{data,storeId}', payload_json #>> '{data,status}', payload_json #>> '{data,reason}', 
		'/licenses/' || aggregate_id)
		FROM outbox_events WHERE event_type = $1`, events.LicenseStatusChanged.Contract().Type)
	if err != nil {
		return r, err
	}
	r.compareOrders(placed, modelled)
	r.compareNotices(changes, notices)
	err = shop.QueryRow(ctx, `SELECT count(*), count(published_at) FROM outbox_events`).Scan(&r.Emitted, &r.Published)
	if err != nil {
		return r, fmt.Errorf("count the events: %w", err)
	}
	return r, nil
}

// An orderRow is an order as one of the two has it, in words that can be compared.
type orderRow struct {
	ID, Text string
	InOrder  bool
}

// A change is an event about a licence, and a notice one that came of it.
type (
	change struct{ EventID, Status, Text string }
	notice struct{ EventID, Audience, Text string }
)

func (r *Report) compareOrders(placed, modelled []orderRow) {
	has := map[string]string{}
	for _, order := range modelled {
		has[order.ID] = order.Text
		if order.InOrder {
			r.InOrder++
		}
	}
	for _, order := range placed {
		r.Orders++
		if has[order.ID] != order.Text {
			r.Differ++
		}
		delete(has, order.ID)
	}
	r.Invented = len(has)
}

func (r *Report) compareNotices(changes []change, notices []notice) {
	want := map[string]notice{}
	for _, change := range changes {
		audience := "store"
		if change.Status == "pending" {
			audience = "admin"
		}
		want[change.EventID] = notice{EventID: change.EventID, Audience: audience, Text: change.Text}
	}
	seen := map[string]bool{}
	for _, notice := range notices {
		switch notice.Audience {
		case "admin":
			r.ToAdmins++
		default:
			r.ToStores++
		}
		if want[notice.EventID] != notice {
			r.Wrong++
		}
		if seen[notice.EventID] {
			r.Double++
		}
		seen[notice.EventID] = true
	}
	r.Changes = len(changes)
	for id := range want {
		if !seen[id] {
			r.Missing++
		}
	}
}

func rows[T any](ctx context.Context, pool *pgxpool.Pool, statement string, args ...any) ([]T, error) {
	found, err := pool.Query(ctx, statement, args...)
	if err != nil {
		return nil, fmt.Errorf("query: %w", err)
	}
	all, err := pgx.CollectRows(found, pgx.RowToStructByPos[T])
	if err != nil {
		return nil, fmt.Errorf("read %.40s: %w", strings.Join(strings.Fields(statement), " "), err)
	}
	return all, nil
}
