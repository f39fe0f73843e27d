package pgstore

import (
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Extend is extend.
func Extend(xid uint32, xmax uint64) uint64 { return extend(xid, xmax) }

// Readable is readable.
func Readable(text string) string { return readable(text) }

// Micros is micros.
func Micros(d time.Duration) int64 { return micros(d) }

// SettleStatement is the text that a settle uses first, and its arguments.
func (s *Store) SettleStatement(settle *core.Settle) (statement string, args []any) {
	if onlyPublished(settle) {
		return s.sql.settlePublished, publishedArgs(settle)
	}
	return s.FullSettle(settle)
}

// FullSettle is the text that settles whatever there is, and its arguments.
func (s *Store) FullSettle(settle *core.Settle) (statement string, args []any) {
	return s.sql.settle, changesOf(settle).args(settle)
}

// ReadStatement is the text that a read uses, and its arguments.
func (s *Store) ReadStatement(read core.Read) (statement string, args []any) {
	return s.sql.read, readArgs(read)
}

// UnparkArgs, KeysArgs and ParkedArgs are the arguments of unpark.sql, held_keys.sql and old_parked.sql.
func UnparkArgs(unpark core.Unpark) []any { return unparkArgs(unpark) }

// KeysArgs: see UnparkArgs.
func KeysArgs(held core.HeldKeys) []any { return keysArgs(held) }

// ParkedArgs: see UnparkArgs.
func ParkedArgs(old core.OldParked) []any { return parkedArgs(old) }

// HeldAsks are the arguments of held_rows.sql.
func HeldAsks(held core.HeldRows) []any {
	return append(append(heldAsks(held.Asks), int32(held.Limit)), asker(held.Owner)...)
}

// DueAsks are the arguments of due_keys.sql.
func DueAsks(due core.DueKeys) []any { return append(dueAsks(due), asker(due.Owner)...) }

// Asker are the arguments that say for whom a statement is.
func Asker(owner core.Owner) (relay, token any) {
	args := asker(owner)
	return args[0], args[1]
}

// Statement is the text of a file, with its schema.
func Statement(file, schema string) string { return statement(file, `"`+schema+`"`) }

// TakeArgs are the arguments of take_requests.sql.
func TakeArgs(take core.TakeRequests) []any { return takeArgs(take) }
