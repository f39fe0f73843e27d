// Package api is the marketplace over HTTP. Every change and its events are one transaction: see change.go for how, and
// the files named for what is sold, shown and paid for what.
//
// It is an example: whoever reaches its address may do everything.
package api

import (
	"context"
	"log/slog"
	"net/http"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/outbox"
)

// deadline bounds what a request may keep the database busy.
const deadline = 20 * time.Second

type api struct {
	pool   *pgxpool.Pool
	bell   *outbox.Doorbell
	logger *slog.Logger
}

// New makes the handler. The bell wakes the publisher after a commit; without one its next poll finds the events.
func New(pool *pgxpool.Pool, bell *outbox.Doorbell, logger *slog.Logger) http.Handler {
	a := &api{pool: pool, bell: bell, logger: logger}
	mux := http.NewServeMux()

	mux.Handle("POST /stores", change(a, createStore))

	mux.Handle("POST /orders", change(a, createOrder))
	mux.Handle("GET /orders/{id}", show[order](a, selectOrder))
	mux.Handle("POST /orders/{id}/accept", change(a, moveOrder("accepted", "pending")))
	mux.Handle("POST /orders/{id}/ship", change(a, moveOrder("shipped", "accepted")))
	mux.Handle("POST /orders/{id}/deliver", change(a, moveOrder("delivered", "shipped")))
	mux.Handle("POST /orders/{id}/lines/{line}/pack", change(a, packLine))
	mux.Handle("POST /orders/{id}/cancel", change(a, cancelOrder))
	mux.Handle("POST /orders/{id}/expire", change(a, expireOrder))
	mux.Handle("POST /orders/{id}/payments", change(a, payOrder))
	mux.Handle("POST /orders/{id}/payouts", change(a, payVendor))

	mux.Handle("POST /licenses", change(a, submitLicense))
	mux.Handle("GET /licenses/{id}", show[license](a, selectLicense))
	mux.Handle("POST /licenses/{id}/verify", change(a, verifyLicense))
	mux.Handle("POST /licenses/{id}/reject", change(a, rejectLicense))
	mux.Handle("POST /licenses/{id}/resubmit", change(a, resubmitLicense))

	mux.Handle("POST /media", change(a, uploadMedia))

	mux.Handle("POST /ads", change(a, createAd))
	mux.Handle("PATCH /ads/{id}", change(a, updateAd))
	mux.Handle("POST /ads/{id}/pause", change(a, pauseAd))
	mux.Handle("POST /ads/{id}/activate", change(a, activateAd))
	mux.Handle("POST /ads/{id}/expire", change(a, expireAd))
	mux.Handle("POST /ads/{id}/rollups", change(a, rollUpAd))

	mux.HandleFunc("GET /readyz", a.ready)
	return mux
}

func (a *api) ready(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), time.Second)
	defer cancel()
	if err := a.pool.Ping(ctx); err != nil {
		http.Error(w, "the database cannot be reached", http.StatusServiceUnavailable)
	}
}

// show answers with the row that the statement finds for the path's id.
func show[T any](a *api, statement string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), deadline)
		defer cancel()
		id, err := pathID(r, "id")
		if err != nil {
			a.fail(w, r, err)
			return
		}
		rows, err := a.pool.Query(ctx, statement, id)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		row, err := pgx.CollectExactlyOneRow(rows, pgx.RowToStructByPos[T])
		if err != nil {
			a.fail(w, r, err)
			return
		}
		a.answer(w, r, http.StatusOK, row)
	}
}
