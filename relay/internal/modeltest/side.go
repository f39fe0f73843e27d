package modeltest

import (
	"context"
	"encoding/binary"
	"fmt"
	"regexp"
	"strconv"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// side is one of the two that are compared. Transactions are numbered in the order in which they begin.
type side interface {
	producers
	operators
	readers
	store() core.Store
	// dump returns everything that the tables hold, one line a row.
	dump(ctx context.Context) ([]string, error)
}

// readers find what a relay has found before.
type readers interface {
	// found is an event as a reader finds it; the sides' clocks differ, and so do the times of their rows.
	found(ctx context.Context, id outbox.ID) (core.Found, error)
	// version is that of a request, by its number; the sides count in their own ways.
	version(ctx context.Context, request int64) (int64, error)
}

// producers are the transactions of applications.
type producers interface {
	begin(ctx context.Context) error
	write(ctx context.Context, tx int, write write) ([]int64, error)
	end(ctx context.Context, tx int, commit bool) error
	// writer names a transaction as a fence lists it, also when it has ended.
	writer(tx int) core.Writer
}

// operators are people, and time.
type operators interface {
	operate(ctx context.Context, verb check.Verb, order order) ([]string, error)
	orders
	redeliver(ctx context.Context, asked redelivery) ([]string, error)
	cancel(ctx context.Context, canceling cancellation) ([]string, error)
	expireRelay(ctx context.Context, relay outbox.ID) error
}

// orders are decisions about no event.
type orders interface {
	pause(ctx context.Context, scope core.Scope, name string, order order) (outcome string, err error)
	resume(ctx context.Context, scope core.Scope, name string, order order) (outcome string, err error)
	limit(ctx context.Context, topic string, rate float64, order order) (outcome string, err error)
}

// write is what one statement, or a savepoint with what is taken back, does in a transaction.
type write struct {
	draw   bool         // only draw a number
	seq    int64        // insert with this number, drawn before
	undo   bool         // insert behind a savepoint, and go back to it
	events []core.Event // what to insert
}

// order is a decision of an operator.
type order struct {
	Action outbox.ID
	Events []outbox.ID
	Actor  string
	Reason string
}

// Kinds of ids, as they are printed.
const (
	eventID  = 'e'
	tokenID  = 't'
	relayID  = 'r'
	actionID = 'a'
)

// newID makes the n-th id of a kind: a UUIDv7 by its form, and a short name in what is printed.
func newID(kind byte, n int) (id outbox.ID) {
	id[6], id[8], id[9] = 0x70, 0x80, kind
	binary.BigEndian.PutUint32(id[12:], uint32(n))
	return id
}

var longID = regexp.MustCompile(`00000000-0000-7000-80([0-9a-f]{2})-0000([0-9a-f]{8})`)

// short replaces the ids in a text by their short names.
func short(text string) string {
	return longID.ReplaceAllStringFunc(text, func(id string) string {
		parts := longID.FindStringSubmatch(id)
		kind, _ := strconv.ParseUint(parts[1], 16, 8)
		n, _ := strconv.ParseUint(parts[2], 16, 32)
		if kind == 0 && n == 0 {
			return "none"
		}
		return fmt.Sprintf("%c%d", rune(kind), n)
	})
}

// eventTypes are the types of the model.
var eventTypes = []string{"placed", "paid", "shipped", "odd"}
