package marketplace

import (
	"context"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Facts are what the tables hold when everything is over, and what was emitted on the way there.
type Facts struct {
	Emitted  []emitted
	Orders   []orderRow
	Lines    []lineRow
	Ledger   []ledgerRow
	Licenses []licenseRow
	Media    []outbox.ID
	Ads      []adRow
	Rollups  []rollupRow
	// Notices and Model are what the consumers made of the events.
	Notices []noticeRow
	Model   []orderRow
}

// orderRow is an order, as the API or the read model has it.
type orderRow struct {
	ID            outbox.ID
	Buyer, Vendor *outbox.ID
	Currency      *string
	TotalCents    *int64
	State         *string
	Revision      *int64
}

type lineRow struct {
	ID, Order outbox.ID
	State     string
}

type ledgerRow struct {
	ID   outbox.ID
	Kind string
}

type licenseRow struct {
	ID     outbox.ID
	Status string
	Reason string
}

type adRow struct {
	ID    outbox.ID
	State string
}

type rollupRow struct {
	Ad  outbox.ID
	Day string
}

type noticeRow struct {
	Event          outbox.ID
	Type, Audience string
	Store, License outbox.ID
	Status, Reason string
	Link           string
}

// readFacts reads the tables.
func readFacts(ctx context.Context, pool *pgxpool.Pool) (*Facts, error) {
	f := &Facts{}
	read := func(err error, next func() error) error {
		if err != nil {
			return err
		}
		return next()
	}
	var err error
	f.Emitted, err = readEmitted(ctx, pool)
	err = read(err,
		into(ctx, pool, &f.Orders,
			"SELECT id, buyer_store_id, vendor_store_id, currency, total_cents, state, revision FROM orders"))
	err = read(err, into(ctx, pool, &f.Lines, "SELECT id, order_id, state FROM order_lines"))
	err = read(err, into(ctx, pool, &f.Ledger, "SELECT id, kind FROM ledger_entries"))
	err = read(err, into(ctx, pool, &f.Licenses, "SELECT id, status, coalesce(reason, '') FROM licenses"))
	err = read(err, into(ctx, pool, &f.Ads, "SELECT id, state FROM ads"))
	err = read(err, into(ctx, pool, &f.Rollups, "SELECT ad_id, day::text FROM ad_rollups"))
	err = read(err,
		into(ctx, pool, &f.Notices,
			"SELECT event_id, type, audience, store_id, license_id, status, coalesce(reason, ''), link FROM notifications"))
	err = read(err,
		into(ctx, pool, &f.Model,
			"SELECT order_id, buyer_store_id, vendor_store_id, currency, total_cents, state, revision FROM order_read_model"))
	var media []struct{ ID outbox.ID }
	err = read(err, into(ctx, pool, &media, "SELECT id FROM media"))
	for _, r := range media {
		f.Media = append(f.Media, r.ID)
	}
	return f, err
}

func into[R any](ctx context.Context, pool *pgxpool.Pool, list *[]R, query string) func() error {
	return func() (err error) {
		*list, err = rows[R](ctx, pool, query)
		return err
	}
}
