package torture

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// interrupted tells whether an error is about the connection, or about a server that is going, coming or no
// longer the primary; never about the statement.
func interrupted(err error) bool {
	var of *pgconn.PgError
	if !errors.As(err, &of) {
		return err != nil // from the wire, the pool or a deadline
	}
	if len(of.Code) != 5 {
		return false
	}
	switch of.Code[:2] {
	case "08", "53", "57": // connection, too many of them, operator intervention
		return true
	default:
		return of.Code == "25006" || tooSlow(err) // read-only: this one is a standby now
	}
}

// tooSlow tells whether a transaction was ended because its client did not go on: the outbox's functions bound that. It
// happens to a client on a busy machine, or behind a slow wire; the same is sent again then.
func tooSlow(err error) bool {
	of := (*pgconn.PgError)(nil)
	return errors.As(err, &of) && of.Code == "25P03" // idle_in_transaction_session_timeout
}
