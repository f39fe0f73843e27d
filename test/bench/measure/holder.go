package bench

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Statements are what a relay says all the time, word for word: what a statement costs is known of its own words alone.
type Statements struct {
	Read, Settle, Beat, EndExpired string
}

// StatementsOf are those that a tap has heard. The relay must have published something; it ends others only where one
// has died, so that statement is the call of the function itself.
func StatementsOf(tap *Tap, schema string) (s Statements, err error) {
	for _, one := range []struct {
		text  *string
		parts []string
	}{
		{&s.Read, []string{"pg_visible_in_snapshot"}},
		{&s.Settle, []string{"SET state = 6, published_at = clock_timestamp()"}},
		{&s.Beat, []string{"INSERT INTO", "outbox_beats (relay, number, until"}},
	} {
		if *one.text, err = tap.Statement(one.parts...); err != nil {
			return s, err
		}
	}
	s.EndExpired = "SELECT " + schema + ".outbox_end_expired($1::uuid, $2::integer, $3::boolean)"
	return s, nil
}

// Conn is a connection or a transaction.
type Conn interface {
	Query(ctx context.Context, sql string, args ...any) (pgx.Rows, error)
}

// A Holder is a relay as far as the database can tell: a row with a token, lanes and beats.
type Holder struct {
	ID, Token outbox.ID
	Lanes     []int16
	// Behind is the number behind which it reads, of each lane.
	Behind []int64

	statements Statements
	beats      int64
}

// NewHolder joins with these lanes, which must be free.
func NewHolder(ctx context.Context, db *Database, schema string, statements Statements,
	lanes ...int16,
) (*Holder, error) {
	h := &Holder{
		ID: outbox.NewID(), Token: outbox.NewID(), Lanes: lanes, Behind: make([]int64, len(lanes)),
		statements: statements, beats: 1,
	}
	join := strings.ReplaceAll(`WITH relay AS (
			INSERT INTO {schema}.outbox_relays (id, token, name, lanes) VALUES ($1, $2, 'bench', $3) RETURNING id
		), taken AS (
			UPDATE {schema}.outbox_lanes SET owner = $1, token = $2, acquired_at = clock_timestamp() WHERE lane = ANY ($3)
		) INSERT INTO {schema}.outbox_beats (relay, number, until)
		  SELECT id, 1, clock_timestamp() + interval '1 day' FROM relay`, "{schema}", schema)
	if _, err := db.Control.Exec(ctx, join, [16]byte(h.ID), [16]byte(h.Token), lanes); err != nil {
		return nil, fmt.Errorf("bench: join: %w", err)
	}
	return h, nil
}

// A Key leads to an event's row.
type Key struct {
	Lane int16
	Seq  int64
}

// Read reads so many ready events of each lane, and answers where they stand.
func (h *Holder) Read(ctx context.Context, on Conn, each int) ([]Key, error) {
	n := len(h.Lanes)
	limits, windows := make([]int32, n), make([]int64, n)
	for i := range n {
		limits[i], windows[i] = int32(each), 1<<62
	}
	rows, err := on.Query(ctx, h.statements.Read, h.Lanes, h.Behind, h.Behind, limits, []int64{}, []int64{},
		[16]byte(h.ID), [16]byte(h.Token), []string{}, windows)
	if err != nil {
		return nil, fmt.Errorf("bench: read: %w", err)
	}
	defer rows.Close()
	var found []Key
	for rows.Next() {
		raw, err := rows.Values()
		if err != nil {
			return nil, fmt.Errorf("bench: read: %w", err)
		}
		if lane, ok := raw[0].(int16); ok { // else it is the row that is there when nothing else is
			found = append(found, Key{lane, raw[1].(int64)})
		}
	}
	return found, rows.Err()
}

// Pass lets the next read begin behind these events.
func (h *Holder) Pass(events []Key) {
	for _, event := range events {
		at := slices.Index(h.Lanes, event.Lane)
		h.Behind[at] = max(h.Behind[at], event.Seq)
	}
}

// Settle takes events down as published. All of them must have been ready.
func (h *Holder) Settle(ctx context.Context, on Conn, events []Key) error {
	slices.SortFunc(events, func(a, b Key) int { return cmp.Compare(a.Seq, b.Seq) })
	lanes, numbers := make([]int16, len(events)), make([]int64, len(events))
	for i, event := range events {
		lanes[i], numbers[i] = event.Lane, event.Seq
	}
	of := slices.Compact(slices.Sorted(slices.Values(lanes)))
	var applied bool
	var settled int
	err := one(ctx, on, h.statements.Settle, []any{&applied, nil, nil, &settled}, [16]byte(h.ID), [16]byte(h.Token), of,
		lanes, numbers, numbers[0], numbers[len(numbers)-1])
	if err == nil && (!applied || settled != len(events)) {
		err = fmt.Errorf("%d of %d events were ready, and its own: %t", settled, len(events), applied)
	}
	if err != nil {
		return fmt.Errorf("bench: settle: %w", err)
	}
	return nil
}

// Beat says once more that it is alive, for so long, and takes back the beat before the last, as relays do.
func (h *Holder) Beat(ctx context.Context, on Conn, lease time.Duration) error {
	floors, recovered := make([]int64, len(h.Lanes)), make([]bool, len(h.Lanes))
	h.beats++
	err := one(ctx, on, h.statements.Beat, []any{nil}, [16]byte(h.ID), [16]byte(h.Token), h.beats, lease.Microseconds(),
		h.Lanes, floors, recovered, []int16{}, []string{}, "", h.beats-2, h.beats-1, floors)
	if err != nil {
		return fmt.Errorf("bench: beat %d: %w", h.beats, err)
	}
	return nil
}

// EndExpired ends who has not beaten for a lease, and tells how many those were.
func (h *Holder) EndExpired(ctx context.Context, on Conn) (ended int, err error) {
	rows, err := on.Query(ctx, h.statements.EndExpired, [16]byte(h.ID), int32(8), false)
	if err == nil {
		var all [][16]byte
		all, err = pgx.CollectRows(rows, pgx.RowTo[[16]byte])
		ended = len(all)
	}
	if err != nil {
		return 0, fmt.Errorf("bench: end expired relays: %w", err)
	}
	return ended, nil
}

// one reads the one row of an answer.
func one(ctx context.Context, on Conn, statement string, into []any, args ...any) error {
	rows, err := on.Query(ctx, statement, args...)
	if err != nil {
		return err
	}
	n := 0
	_, err = pgx.ForEachRow(rows, into, func() error { n++; return nil })
	if err == nil && n != 1 {
		err = fmt.Errorf("%d rows, want one", n)
	}
	return err
}
