package emit

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/proxy"
)

// commitMessage is a simple query COMMIT on the wire, as pgx sends it.
const commitMessage = "commit\x00"

// attempt runs the application's transaction once through a connection to whose COMMIT a fault may happen: a business
// row, an event, COMMIT. The error is what the application sees.
func (p env) attempt(t testing.TB, fault proxy.Fault, order string, event corpus.Given) error {
	t.Helper()
	x := proxy.New(t, p.URL)
	x.At(commitMessage, fault)
	conn, err := pgx.Connect(t.Context(), x.Through(t, p.URL))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	tx, err := conn.Begin(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	// Held until the transaction has ended, on whatever way; see resolve.
	if _, err := tx.Exec(t.Context(), "SELECT pg_advisory_xact_lock(hashtextextended($1, 2))",
		p.Schema+order); err != nil {
		t.Fatal(err)
	}
	if _, err := tx.Exec(t.Context(), p.SQL("INSERT INTO {schema}.orders (id) VALUES ($1) ON CONFLICT DO NOTHING"),
		order); err != nil {
		t.Fatal(err)
	}
	if _, err := corpus.Emit(t.Context(), tx, p.Schema, []corpus.Given{event}); err != nil {
		t.Fatal(err)
	}
	return tx.Commit(t.Context())
}

// resolve waits for the end of an attempt whose outcome is unknown, and looks at the business row.
func (p env) resolve(t testing.TB, order string) (committed bool) {
	t.Helper()
	tx := p.begin(t)
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	defer cancel()
	if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 2))", p.Schema+order); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, tx)
	return p.Count(t, "SELECT count(*) FROM {schema}.orders WHERE id = $1", order) == 1
}

// lostConnection tells an error of the connection from an answer of the server.
func lostConnection(err error) bool {
	var state interface{ SQLState() string }
	return err != nil && !errors.As(err, &state)
}
