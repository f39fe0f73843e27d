package outbox

import (
	"errors"
	"fmt"
	"strings"
)

// ErrRefused is what every refusal is: an event was not acceptable, nothing was written, and the
// transaction is as usable as before.
var ErrRefused = errors.New("outbox: refused")

// ErrDedupeMismatch is the refusal of an event whose dedupe key was used before with other content.
var ErrDedupeMismatch = fmt.Errorf("%w: the dedupe key was used before with other content", ErrRefused)

// ErrNoTransaction is the refusal of [EmitGORM] to write outside a transaction.
var ErrNoTransaction = fmt.Errorf("%w: not in a transaction: call it inside db.Transaction, with that transaction's "+
	"Statement.ConnPool", ErrRefused)

// A FieldError says which field of which event was refused and why. It names sizes and limits and
// never the value, which may be personal or hostile. It is an [ErrRefused].
type FieldError struct {
	Index     int    // position of the event in the call
	EventType string // empty where the type itself is the problem
	Field     string // for instance aggregate_id, data or headers
	Problem   string // for instance "600 bytes, the limit is 512"
}

// Error names the event, the field and the problem.
func (e *FieldError) Error() string {
	of := ""
	if e.EventType != "" {
		of = " (" + e.EventType + ")"
	}
	return fmt.Sprintf("outbox: event %d%s: %s: %s", e.Index, of, e.Field, e.Problem)
}

// Is makes every FieldError an [ErrRefused].
func (e *FieldError) Is(target error) bool { return target == ErrRefused }

// A DedupeMismatchError says which event met a used key, and whose it is. It is an
// [ErrDedupeMismatch] and an [ErrRefused].
type DedupeMismatchError struct {
	Index     int    // position of the event in the call
	EventType string // its type
	FirstID   ID     // the event that the key stands for; zero when that is another event of the same call
}

// Error names the event and the one that holds its key.
func (e *DedupeMismatchError) Error() string {
	holder := "another event of the same call"
	if e.FirstID != (ID{}) {
		holder = "event " + e.FirstID.String()
	}
	return fmt.Sprintf("outbox: event %d (%s): dedupe_key: used before with other content, by %s", e.Index,
		e.EventType, holder)
}

// Is makes every DedupeMismatchError an [ErrDedupeMismatch] and an [ErrRefused].
func (e *DedupeMismatchError) Is(target error) bool {
	return target == ErrDedupeMismatch || target == ErrRefused
}

// Retryable tells whether running the whole transaction again may succeed: PostgreSQL gave it up for
// a serialization failure or a deadlock. The transaction itself is lost. Under REPEATABLE READ and
// above, a concurrent emit with the same dedupe key ends like this.
func Retryable(err error) bool {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return false
	}
	code := state.SQLState()
	return code == "40001" || code == "40P01"
}

// hint says what to do about the errors that a person meets on the first day.
func hint(err error, schema string) string {
	var state interface{ SQLState() string }
	if !errors.As(err, &state) {
		return ""
	}
	switch state.SQLState() {
	case "42P01", "3F000", "42883":
		return fmt.Sprintf("; there is no outbox in schema %.80q, or an old one: run 'outboxctl migrate up'", schema)
	case "42501":
		return "; run 'outboxctl grant producer ROLE'"
	case "25006":
		return "; this server only reads: connect to the primary"
	}
	return ""
}

// A ContractError says why a stored event does not keep its contract.
type ContractError struct {
	Reason Reason
	Detail string // what was expected; never the payload
}

// Error gives the reason and the detail.
func (e *ContractError) Error() string { return "outbox: " + string(e.Reason) + ": " + e.Detail }

// A Reason is why an event cannot be published, in the words of the dead letter table.
type Reason string

// The reasons a registry can give.
const (
	UnknownEventType  Reason = "unknown_event_type"
	InvalidPayload    Reason = "invalid_payload"
	AggregateMismatch Reason = "aggregate_mismatch"
)

// A RegistryError lists everything that is wrong with a set of contracts.
type RegistryError struct {
	Problems []string
}

// Error lists the problems, one a line.
func (e *RegistryError) Error() string {
	return "outbox: the registry is refused:\n  " + strings.Join(e.Problems, "\n  ")
}
