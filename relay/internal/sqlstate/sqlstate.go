// Package sqlstate tells PostgreSQL's errors apart by their codes.
package sqlstate

import (
	"errors"

	"github.com/jackc/pgx/v5/pgconn"
)

// The codes that somebody asks for.
const (
	DeadlockDetected      = "40P01"
	InsufficientPrivilege = "42501"
	InvalidSchemaName     = "3F000"
	LockNotAvailable      = "55P03"
	QueryCanceled         = "57014"
	UndefinedTable        = "42P01"
)

// Of is the code of an error; empty: it is none of PostgreSQL's.
func Of(err error) string {
	if found := (*pgconn.PgError)(nil); errors.As(err, &found) {
		return found.Code
	}
	return ""
}

// PermissionDenied tells whether the role lacks a right.
func PermissionDenied(err error) bool { return Of(err) == InsufficientPrivilege }
