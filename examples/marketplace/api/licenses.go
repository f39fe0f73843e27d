package api

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

type license struct {
	ID      outbox.ID `json:"id"`
	StoreID outbox.ID `json:"storeId"`
	Number  string    `json:"number"`
	Status  string    `json:"status"`
	Reason  *string   `json:"reason,omitempty"`
}

const selectLicense = `SELECT id, store_id, number, status, reason FROM licenses WHERE id = $1`

type newLicense struct {
	StoreID outbox.ID `json:"storeId"`
	Number  string    `json:"number"`
}

func (l newLicense) check() error { return checkText("number", l.Number) }

// submitLicense adds a licence, for an admin to look at.
func submitLicense(ctx context.Context, tx pgx.Tx, _ *http.Request, in newLicense) (result, error) {
	id := outbox.NewID()
	if _, err := tx.Exec(ctx, `INSERT INTO licenses (id, store_id, number) VALUES ($1, $2, $3)`, id, in.StoreID,
		in.Number); err != nil {
		return result{}, database(err)
	}
	done, err := emitLicense(ctx, tx, id, in.StoreID, events.LicensePending, "")
	done.status = http.StatusCreated
	return done, err
}

func verifyLicense(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
	return setLicenseStatus(ctx, tx, r, events.LicensePending, events.LicenseVerified, "")
}

type rejection struct {
	Reason string `json:"reason"`
}

func (r rejection) check() error { return checkText("reason", r.Reason) }

func rejectLicense(ctx context.Context, tx pgx.Tx, r *http.Request, in rejection) (result, error) {
	return setLicenseStatus(ctx, tx, r, events.LicensePending, events.LicenseRejected, in.Reason)
}

func resubmitLicense(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
	return setLicenseStatus(ctx, tx, r, events.LicenseRejected, events.LicensePending, "")
}

func setLicenseStatus(ctx context.Context, tx pgx.Tx, r *http.Request, from, to events.LicenseStatus,
	reason string,
) (result, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return result{}, err
	}
	if _, err := lockedState(ctx, tx, []string{string(from)}, `SELECT status FROM licenses WHERE id = $1 FOR UPDATE`,
		id); err != nil {
		return result{}, err
	}
	var store outbox.ID
	err = tx.QueryRow(ctx, `UPDATE licenses SET status = $2, reason = NULLIF($3, '') WHERE id = $1 RETURNING store_id`, id,
		to, reason).Scan(&store)
	if err != nil {
		return result{}, database(err)
	}
	return emitLicense(ctx, tx, id, store, to, reason)
}

func emitLicense(ctx context.Context, tx pgx.Tx, id, store outbox.ID, status events.LicenseStatus,
	reason string,
) (result, error) {
	ids, err := emit(ctx, tx, events.LicenseStatusChanged.New(id.String(), events.LicenseStatusChangedV1{
		LicenseID: id.String(), StoreID: store.String(), Status: status, Reason: reason,
	}))
	return result{ID: id, State: string(status), EventIDs: ids}, err
}
