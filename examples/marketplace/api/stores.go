package api

import (
	"context"
	"net/http"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

type newStore struct {
	Name string `json:"name"`
}

func (s newStore) check() error { return checkText("name", s.Name) }

// createStore adds a store. Nobody waits to hear of it, so there is no event.
func createStore(ctx context.Context, tx pgx.Tx, _ *http.Request, in newStore) (result, error) {
	done := result{status: http.StatusCreated, ID: outbox.NewID()}
	_, err := tx.Exec(ctx, `INSERT INTO stores (id, name) VALUES ($1, $2)`, done.ID, in.Name)
	return done, database(err)
}
