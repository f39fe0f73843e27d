package consumers

import (
	"context"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
)

// ComplianceName is what the inbox knows the compliance consumer by, forever.
const ComplianceName = "compliance"

// Compliance tells admins of licences that wait for them, and stores what became of theirs. The notice and the mark in
// the inbox are one transaction: there is exactly one notice for an event, however often it comes.
func Compliance(pool *pgxpool.Pool, config consumer.Config) (*consumer.Consumer, error) {
	config.Name = ComplianceName
	return consumer.New(config, ignoreAllBut(events.LicenseStatusChanged),
		consumer.On(events.LicenseStatusChanged,
			func(ctx context.Context, event *consumer.Event, license events.LicenseStatusChangedV1) error {
				return once(ctx, pool, ComplianceName, event, func(ctx context.Context, tx pgx.Tx) error {
					return notify(ctx, tx, event, license)
				})
			}))
}

// ComplianceWithRedis is the same with its memory in Redis, for effects that are not in PostgreSQL. Notice and mark are
// in two places then: a process that dies between the two leaves a notice that is written again.
func ComplianceWithRedis(pool *pgxpool.Pool, guard *redisinbox.Guard,
	config consumer.Config,
) (*consumer.Consumer, error) {
	config.Name, config.Middleware = ComplianceName, append(config.Middleware, guard.Once)
	return consumer.New(config, ignoreAllBut(events.LicenseStatusChanged),
		consumer.On(events.LicenseStatusChanged,
			func(ctx context.Context, event *consumer.Event, license events.LicenseStatusChangedV1) error {
				return notify(ctx, pool, event, license)
			}))
}

const insertNotice = `INSERT INTO notifications (type, audience, store_id, license_id, status, reason, link, event_id)
	VALUES ('compliance', $1, $2, $3, $4, NULLIF($5, ''), $6, $7)`

// notify writes the notice of a licence's new status.
func notify(ctx context.Context, db interface {
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}, event *consumer.Event, license events.LicenseStatusChangedV1,
) error {
	audience := "store"
	if license.Status == events.LicensePending {
		audience = "admin"
	}
	_, err := db.Exec(ctx, insertNotice, audience, license.StoreID, license.LicenseID, license.Status, license.Reason,
		"/licenses/"+license.LicenseID, event.ID)
	if err != nil {
		return fmt.Errorf("write the notice: %w", err)
	}
	return nil
}
