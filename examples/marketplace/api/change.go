package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/outbox"
)

// maxBody is the most that a request may say.
const maxBody = 64 << 10

// An input is the body of a request. check refuses what cannot be meant.
type input interface{ check() error }

// nothing is the input of requests that say all in their path.
type nothing struct{}

func (nothing) check() error { return nil }

// A result is what a change has come to.
type result struct {
	status   int         // 200 unless told otherwise
	ID       outbox.ID   `json:"id"`
	State    string      `json:"state,omitempty"`
	Revision int64       `json:"revision,omitempty"`
	LineIDs  []outbox.ID `json:"lineIds,omitempty"`
	EventIDs []outbox.ID `json:"eventIds,omitempty"`
}

// change makes a handler of a change. The body is read first, so that a slow client holds no transaction open. Then the
// change and its events commit together or not at all, and the publisher is woken.
func change[I input](a *api,
	do func(ctx context.Context, tx pgx.Tx, r *http.Request, in I) (result, error),
) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), deadline)
		defer cancel()
		in, err := read[I](w, r)
		if err != nil {
			a.fail(w, r, err)
			return
		}
		var done result
		err = a.bell.After(outbox.InTx(ctx, a.pool, func(ctx context.Context, tx pgx.Tx) error {
			var err error
			done, err = do(ctx, tx, r, in)
			return err
		}))
		if err != nil {
			a.fail(w, r, err)
			return
		}
		if done.status == 0 {
			done.status = http.StatusOK
		}
		a.answer(w, r, done.status, done)
	}
}

// emit writes events in the change's transaction, and returns their ids.
func emit(ctx context.Context, tx pgx.Tx, emitted ...outbox.Event) ([]outbox.ID, error) {
	receipts, err := outbox.Emit(ctx, tx, emitted...)
	if err != nil {
		return nil, err
	}
	ids := make([]outbox.ID, len(receipts))
	for i, receipt := range receipts {
		ids[i] = receipt.ID
	}
	return ids, nil
}

// read reads and checks the body. None at all is an empty object.
func read[I input](w http.ResponseWriter, r *http.Request) (in I, err error) {
	decoder := json.NewDecoder(http.MaxBytesReader(w, r.Body, maxBody))
	decoder.DisallowUnknownFields()
	var tooLarge *http.MaxBytesError
	switch err := decoder.Decode(&in); {
	case errors.As(err, &tooLarge):
		return in, reject(http.StatusRequestEntityTooLarge, "a body may have %d bytes", maxBody)
	case err != nil && !errors.Is(err, io.EOF):
		return in, reject(http.StatusBadRequest, "the body: %v", err)
	}
	if err := in.check(); err != nil {
		return in, reject(http.StatusBadRequest, "the body: %v", err)
	}
	return in, nil
}

// pathID reads an id of the path. What is no id names nothing.
func pathID(r *http.Request, name string) (outbox.ID, error) {
	id, err := outbox.ParseID(r.PathValue(name))
	if err != nil {
		return id, reject(http.StatusNotFound, "there is no such thing")
	}
	return id, nil
}

// An httpError is what the client gets to read about an error.
type httpError struct {
	status int
	text   string
}

func (e *httpError) Error() string { return e.text }

func reject(status int, format string, args ...any) error {
	return &httpError{status: status, text: fmt.Sprintf(format, args...)}
}

// fail answers with an error. What the client cannot fix is logged and not shown.
func (a *api) fail(w http.ResponseWriter, r *http.Request, err error) {
	answer := asHTTPError(err)
	if answer.status >= http.StatusInternalServerError {
		a.logger.ErrorContext(r.Context(), "a request failed", slog.String("path", r.URL.Path),
			slog.String("error", err.Error()))
	}
	a.answer(w, r, answer.status, map[string]string{"error": answer.text})
}

// asHTTPError says what an error means for the client.
func asHTTPError(err error) *httpError {
	var answer *httpError
	var postgres *pgconn.PgError
	switch {
	case errors.As(err, &answer):
		return answer
	case errors.Is(err, pgx.ErrNoRows):
		return &httpError{http.StatusNotFound, "there is no such thing"}
	case errors.Is(err, outbox.ErrDedupeMismatch):
		return &httpError{http.StatusConflict, "it was said before with other content"}
	case errors.Is(err, outbox.ErrRefused): // the contract refuses what the checks have let through
		return &httpError{http.StatusBadRequest, err.Error()}
	case errors.As(err, &postgres) && postgres.Code == "23503": // foreign_key_violation
		return &httpError{http.StatusNotFound, "something that it refers to does not exist"}
	case errors.As(err, &postgres) && postgres.Code == "23505": // unique_violation
		return &httpError{http.StatusConflict, "it was done before"}
	default:
		return &httpError{http.StatusServiceUnavailable, "it is not known whether it was done: look before trying again"}
	}
}

func (a *api) answer(w http.ResponseWriter, r *http.Request, status int, body any) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	if err := json.NewEncoder(w).Encode(body); err != nil {
		a.logger.DebugContext(r.Context(), "an answer was not taken", slog.String("error", err.Error()))
	}
}
