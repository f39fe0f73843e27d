package emit_test

import (
	"context"
	"errors"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// notifies tells whether the producer's transaction has a NOTIFY in it, on whichever channel and however
// deep in functions and triggers. PostgreSQL knows: it does not prepare such a transaction.
func (p producer) notifies(ctx context.Context, in env) (bool, error) {
	name := pgtest.NewName("wakeup")
	err := p.run(ctx, in, "PREPARE TRANSACTION '"+name+"'")
	var rejected *pgconn.PgError
	if errors.As(err, &rejected) && rejected.Code == "0A000" {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	_, err = in.Pool.Exec(ctx, "ROLLBACK PREPARED '"+name+"'")
	return false, err
}

// Faults W2 and S12: inside a transaction a NOTIFY makes all commits of the server wait for one another,
// and fail once the queue is full.
func TestNoEmitNotifiesInItsTransaction(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, producer := range producers() {
			switch notifies, err := producer.notifies(t.Context(), p); {
			case err != nil:
				t.Errorf("%s: %v", producer.name, err)
			case notifies:
				t.Errorf("%s: its transaction has a NOTIFY", producer.name)
			}
		}
	})
}

// The check must see a NOTIFY wherever somebody may put one.
func TestTheCheckSeesANotify(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		for _, mutant := range []producer{
			statement("NOTIFY", "NOTIFY posthaste"),
			statement("another channel", "NOTIFY somebody, 'x'"),
			statement("pg_notify", "SELECT pg_catalog.pg_notify('posthaste', 'x')"),
			statement("outbox_wake", "SELECT {schema}.outbox_wake()"),
			statement("inside a block", "DO $$ BEGIN PERFORM pg_catalog.pg_notify('posthaste', 'x'); END $$"),
		} {
			if notifies, err := mutant.notifies(t.Context(), p); err != nil || !notifies {
				t.Errorf("%s: got %v, %v", mutant.name, notifies, err)
			}
		}
		p.Exec(t, `CREATE FUNCTION {schema}.mutant() RETURNS trigger LANGUAGE plpgsql AS $$
			BEGIN NOTIFY posthaste; RETURN NULL; END $$`)
		p.Exec(t, "CREATE TRIGGER mutant AFTER INSERT ON {schema}.outbox_events EXECUTE FUNCTION {schema}.mutant()")
		for _, producer := range producers() {
			if notifies, err := producer.notifies(t.Context(), p); err != nil || !notifies {
				t.Errorf("%s with a trigger: got %v, %v", producer.name, notifies, err)
			}
		}
	})
}
