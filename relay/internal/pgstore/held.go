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

// Unpark looks at parked rows, and sets those of the given types to retrying, due now, in lanes that are still held.
func (s *Store) Unpark(ctx context.Context, unpark core.Unpark) (answer core.UnparkAnswer, err error) {
	crash.Point("unpark.before")
	answer.Seen, err = s.scan(ctx, "unpark", s.sql.unpark, unparkArgs(unpark),
		func(decode *decoder, raw [][]byte) { answer.Page = decode.page(raw) })
	if err == nil {
		crash.Point("unpark.after")
	}
	return answer, err
}

func unparkArgs(unpark core.Unpark) []any {
	args := append(places(unpark.Lanes, pgtype.NegativeInfinity, 0), texts(unpark.Types), limit(unpark.Limit))
	return append(args, asker(unpark.Owner)...)
}

// HeldKeys lists what is held in the lanes: the first held row of each aggregate and event type.
func (s *Store) HeldKeys(ctx context.Context, held core.HeldKeys) (core.KeysAnswer, error) {
	crash.Point("claim.before_held")
	return s.keys(ctx, "held keys", s.sql.heldKeys, keysArgs(held)...)
}

func keysArgs(held core.HeldKeys) []any {
	return append(append(lines(held.Lanes), limit(held.Limit)), asker(held.Owner)...)
}

// lines are lanes and the lines behind which they are read, as the statement takes them: where to begin. Behind a line
// comes first whatever has one character more, the lowest there is.
func lines(from []core.LaneLines) []any {
	n := len(from)
	lanes, namespaces, aggregates, ids, types := make([]int16, n), make([]string, n), make([]string, n),
		make([]string, n), make([]string, n)
	for i, ask := range from {
		after := ask.After
		lanes[i], namespaces[i], aggregates[i], ids[i] = ask.Lane, after.Aggregate.Namespace, after.Aggregate.Type,
			after.Aggregate.ID
		if after != (core.HeldLine{}) {
			types[i] = after.EventType + "\x01"
		}
	}
	return []any{lanes, namespaces, aggregates, ids, types}
}

// limit is none where it is zero.
func limit(rows int) pgtype.Int4 { return pgtype.Int4{Int32: int32(rows), Valid: rows > 0} }

// DueKeys lists held rows that are retrying and due, at most limit per lane, of types not excluded.
func (s *Store) DueKeys(ctx context.Context, due core.DueKeys) (core.KeysAnswer, error) {
	return s.keys(ctx, "due keys", s.sql.dueKeys, append(dueAsks(due), asker(due.Owner)...)...)
}

// dueAsks are the lanes and places as the statement takes them.
func dueAsks(due core.DueKeys) []any {
	from := places(due.Lanes, pgtype.Infinity, math.MaxInt64)
	return []any{from[0], texts(due.Exclude), int32(due.Limit), from[1], from[2]}
}

// places are lanes, times and numbers. Where nothing was read yet they begin before the first, which is here.
func places(from []core.LaneFrom, first pgtype.InfinityModifier, number int64) []any {
	n := len(from)
	lanes, times, seqs := make([]int16, n), make([]pgtype.Timestamptz, n), make([]int64, n)
	for i, ask := range from {
		lanes[i], times[i], seqs[i] = ask.Lane, timestamp(ask.After.At), ask.After.Seq
		if ask.After == (core.HeldPlace{}) {
			times[i], seqs[i] = pgtype.Timestamptz{Valid: true, InfinityModifier: first}, number
		}
	}
	return []any{lanes, times, seqs}
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

// OldParked looks at rows that were parked so long ago, and lists those of types not excluded, without payloads.
func (s *Store) OldParked(ctx context.Context, old core.OldParked) (answer core.ParkedAnswer, err error) {
	answer.Seen, err = s.scan(ctx, "old parked rows", s.sql.parked, parkedArgs(old),
		func(decode *decoder, raw [][]byte) {
			answer.Page = decode.page(raw)
			if raw[pageColumns] != nil {
				answer.Events = append(answer.Events, decode.held(raw[pageColumns:]))
			}
		})
	return answer, err
}

func parkedArgs(old core.OldParked) []any {
	args := append(places(old.Lanes, pgtype.NegativeInfinity, 0), micros(old.Age), limit(old.Limit), texts(old.Exclude))
	return append(args, asker(old.Owner)...)
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
