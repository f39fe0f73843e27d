package api

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/outbox"
)

type adText struct {
	Title            string `json:"title"`
	DailyBudgetCents int64  `json:"dailyBudgetCents"`
}

func (a adText) check() error {
	if a.DailyBudgetCents < 0 {
		return errors.New("dailyBudgetCents must not be negative")
	}
	return checkText("title", a.Title)
}

type newAd struct {
	adText
	StoreID outbox.ID `json:"storeId"`
}

func createAd(ctx context.Context, tx pgx.Tx, _ *http.Request, in newAd) (result, error) {
	done := result{status: http.StatusCreated, ID: outbox.NewID(), State: "active"}
	_, err := tx.Exec(ctx, `INSERT INTO ads (id, store_id, title, daily_budget_cents) VALUES ($1, $2, $3, $4)`, done.ID,
		in.StoreID, in.Title, in.DailyBudgetCents)
	if err != nil {
		return done, database(err)
	}
	done.EventIDs, err = emit(ctx, tx, events.AdCreated.New(done.ID.String(), events.AdV1{
		AdID: done.ID.String(), StoreID: in.StoreID.String(), Title: in.Title, DailyBudgetCents: in.DailyBudgetCents,
	}))
	return done, err
}

func updateAd(ctx context.Context, tx pgx.Tx, r *http.Request, in adText) (result, error) {
	return alterAd(ctx, tx, r, events.AdUpdated, []string{"active", "paused"},
		`UPDATE ads SET title = $2, daily_budget_cents = $3 WHERE id = $1`, in.Title, in.DailyBudgetCents)
}

const setAdState = `UPDATE ads SET state = $2 WHERE id = $1`

func pauseAd(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
	return alterAd(ctx, tx, r, events.AdPaused, []string{"active"}, setAdState, "paused")
}

func activateAd(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
	return alterAd(ctx, tx, r, events.AdActivated, []string{"paused"}, setAdState, "active")
}

func expireAd(ctx context.Context, tx pgx.Tx, r *http.Request, _ nothing) (result, error) {
	return alterAd(ctx, tx, r, events.AdExpired, []string{"active", "paused"}, setAdState, "expired")
}

// alterAd changes the path's ad with a statement whose first argument is the ad's id, and tells what it is now.
func alterAd(
	ctx context.Context, tx pgx.Tx, r *http.Request, contract *outbox.ContractFor[events.AdV1], from []string,
	statement string, args ...any,
) (result, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return result{}, err
	}
	if _, err := lockedState(ctx, tx, from, `SELECT state FROM ads WHERE id = $1 FOR UPDATE`, id); err != nil {
		return result{}, err
	}
	done, ad, store := result{ID: id}, events.AdV1{AdID: id.String()}, outbox.ID{}
	err = tx.QueryRow(ctx, statement+` RETURNING store_id, title, daily_budget_cents, state`,
		append([]any{id}, args...)...).
		Scan(&store, &ad.Title, &ad.DailyBudgetCents, &done.State)
	if err != nil {
		return done, database(err)
	}
	ad.StoreID = store.String()
	done.EventIDs, err = emit(ctx, tx, contract.New(ad.AdID, ad))
	return done, err
}

type rollup struct {
	Day         string `json:"day"`
	Impressions int64  `json:"impressions"`
	Clicks      int64  `json:"clicks"`
	SpentCents  int64  `json:"spentCents"`
}

func (r rollup) check() error {
	if _, err := time.Parse(time.DateOnly, r.Day); err != nil {
		return errors.New("day must be like 2026-01-31")
	}
	if r.Impressions < 0 || r.Clicks < 0 || r.SpentCents < 0 {
		return errors.New("figures must not be negative")
	}
	return nil
}

// rollUpAd takes the figures of one day. The nightly job that sends them may send them again: the dedupe key makes the
// second time no event, and other figures for the same day a refusal.
func rollUpAd(ctx context.Context, tx pgx.Tx, r *http.Request, in rollup) (result, error) {
	id, err := pathID(r, "id")
	if err != nil {
		return result{}, err
	}
	_, err = tx.Exec(ctx, `INSERT INTO ad_rollups (ad_id, day, impressions, clicks, spent_cents) VALUES ($1, $2, $3, `+
		`$4, $5) ON CONFLICT DO NOTHING`,
		id, in.Day, in.Impressions, in.Clicks, in.SpentCents)
	if err != nil {
		return result{}, database(err)
	}
	event := events.AdDailyRollupReady.New(id.String(), events.AdDailyRollupReadyV1{
		AdID: id.String(), Day: in.Day, Impressions: in.Impressions, Clicks: in.Clicks, SpentCents: in.SpentCents,
	})
	event.DedupeKey = id.String() + "/" + in.Day
	receipts, err := outbox.Emit(ctx, tx, event)
	if err != nil {
		return result{}, err
	}
	if !receipts[0].Created {
		return result{ID: id}, nil
	}
	return result{status: http.StatusCreated, ID: id, EventIDs: []outbox.ID{receipts[0].ID}}, nil
}
