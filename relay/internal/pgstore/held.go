package pgstore

import (
	"cmp"
	"context"
	"math"
	"slices"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// unparkAtOnce is how many rows one statement unparks. Millions may be parked, and a statement that takes
// longer than the relay's timeout would never end.
const unparkAtOnce = 1000

// Unpark sets parked rows of the given types to retrying, due now, in lanes that are still held.
func (s *Store) Unpark(ctx context.Context, unpark core.Unpark) error {
	owner, lanes, types := asker(unpark.Owner), numbers(unpark.Lanes), texts(unpark.Types)
	for {
		crash.Point("unpark.before")
		answer, err := s.pool.Exec(ctx, s.sql.unpark, owner[0], owner[1], lanes, types, int32(unparkAtOnce))
		if err != nil {
			return failed("unpark", err)
		}
		// A row that somebody else changed meanwhile is not counted: only an answer of none is the end.
		if answer.RowsAffected() == 0 {
			return nil
		}
		crash.Point("unpark.after")
	}
}

// HeldKeys lists what is held in the lanes: the first held row of each aggregate and event type.
func (s *Store) HeldKeys(ctx context.Context, held core.HeldKeys) (core.KeysAnswer, error) {
	crash.Point("claim.before_held")
	return s.keys(ctx, "held keys", s.sql.heldKeys, append([]any{numbers(held.Lanes)}, asker(held.Owner)...)...)
}

// DueKeys lists held rows that are retrying and due, at most limit per lane, of types not excluded.
func (s *Store) DueKeys(ctx context.Context, due core.DueKeys) (core.KeysAnswer, error) {
	return s.keys(ctx, "due keys", s.sql.dueKeys, append(dueAsks(due), asker(due.Owner)...)...)
}

// dueAsks are the lanes and places as the statement takes them.
func dueAsks(due core.DueKeys) []any {
	n := len(due.Lanes)
	lanes, times, seqs := make([]int16, n), make([]pgtype.Timestamptz, n), make([]int64, n)
	for i, ask := range due.Lanes {
		lanes[i], times[i], seqs[i] = ask.Lane, timestamp(ask.After.At), ask.After.Seq
		if ask.After == (core.DuePlace{}) {
			times[i], seqs[i] = pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}, math.MaxInt64
		}
	}
	return []any{lanes, texts(due.Exclude), int32(due.Limit), times, seqs}
}

func (s *Store) keys(ctx context.Context, what, statement string, args ...any) (answer core.KeysAnswer, err error) {
	answer.Seen, err = s.scan(ctx, what, statement, args, func(decode *decoder, raw [][]byte) {
		answer.Keys = append(answer.Keys, decode.key(raw))
	})
	return answer, err
}

// HeldRows reads held rows of aggregates, in order: what is asked for each, at most limit each.
func (s *Store) HeldRows(ctx context.Context, held core.HeldRows) (core.RowsAnswer, error) {
	args := append(heldAsks(held.Asks), int32(held.Limit))
	return s.events(ctx, "held rows", s.sql.heldRows, append(args, asker(held.Owner)...)...)
}

// heldAsks are the asks as the statement takes them. Asks about one topic share their list of types.
func heldAsks(ask []core.HeldAsk) []any {
	n := len(ask)
	lanes, namespaces, types, ids, listOf := make([]int16, n), make([]string, n), make([]string, n), make([]string, n),
		make([]int32, n)
	var lists [][]string
	listOfType, eventTypes := []int32{}, []string{}
	for i, a := range ask {
		list := slices.IndexFunc(lists, func(known []string) bool { return slices.Equal(known, a.Types) })
		if list < 0 {
			list = len(lists)
			lists = append(lists, a.Types)
			for _, eventType := range a.Types {
				listOfType, eventTypes = append(listOfType, int32(list)), append(eventTypes, eventType)
			}
		}
		lanes[i], namespaces[i], types[i], ids[i], listOf[i] = a.Lane, a.Aggregate.Namespace, a.Aggregate.Type,
			a.Aggregate.ID, int32(list)
	}
	return []any{lanes, namespaces, types, ids, listOf, listOfType, eventTypes}
}

// OldParked lists rows that were parked so long ago, at most limit, without payloads.
func (s *Store) OldParked(ctx context.Context, old core.OldParked) (core.RowsAnswer, error) {
	args := []any{numbers(old.Lanes), micros(old.Age), int32(old.Limit), texts(old.Exclude)}
	return s.events(ctx, "old parked rows", s.sql.parked, append(args, asker(old.Owner)...)...)
}

func (s *Store) events(ctx context.Context, what, statement string, args ...any) (answer core.RowsAnswer, err error) {
	answer.Seen, err = s.scan(ctx, what, statement, args, func(decode *decoder, raw [][]byte) {
		answer.Events = append(answer.Events, decode.held(raw))
	})
	return answer, err
}

// scan hands every row of an answer to a function that decodes it, and returns what is in front of each: the
// incarnation, and the lanes that are lost.
func (s *Store) scan(ctx context.Context, what, statement string, args []any,
	each func(*decoder, [][]byte),
) (seen core.Seen, err error) {
	rows, err := s.pool.Query(ctx, statement, s.decoded(args...)...)
	if err != nil {
		return core.Seen{}, failed(what, err)
	}
	defer rows.Close()
	decode := decoder{names: map[string]string{}}
	for rows.Next() && decode.err == nil {
		raw := rows.RawValues()
		seen.Incarnation = decode.intern(raw[0])
		if seen.Lost, err = decodeLanes(raw[1]); err != nil {
			return core.Seen{}, failed(what, err)
		}
		if raw[2] != nil { // a lane
			each(&decode, raw[2:])
		}
	}
	return seen, failed(what, cmp.Or(decode.err, rows.Err()))
}
