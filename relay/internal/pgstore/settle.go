package pgstore

import (
	"bytes"
	"context"
	"slices"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Settle writes what became of events, if the lanes are still held; else it changes nothing. An event may
// be in one of the lists only.
func (s *Store) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	statement, args := s.settleStatement(settle)
	var answer core.SettleAnswer
	var at int64
	beforeSettle(settle)
	var unchanged []pgtype.UUID
	answers := []any{&answer.Applied, &answer.Held, &at}
	if statement == s.sql.settle { // what is published is not asked how it was read
		answers = append(answers, &unchanged)
	}
	if err := s.pool.QueryRow(ctx, statement, args...).Scan(answers...); err != nil {
		return core.SettleAnswer{}, failed("settle", err)
	}
	answer.At = time.UnixMicro(at)
	if answer.Applied {
		for _, id := range unchanged {
			answer.Unchanged = append(answer.Unchanged, id.Bytes)
		}
	}
	afterSettle(settle)
	return answer, nil
}

func (s *Store) settleStatement(settle *core.Settle) (statement string, args []any) {
	args = []any{uuid(settle.Relay), uuid(settle.Token), numbers(settle.Lanes), sorted(settle.Published)}
	if len(settle.Published) == settle.Size() && len(settle.ClearNotes) == 0 {
		return s.sql.settlePublished, args
	}
	args = append(args, retryArgs(settle.Retry)...)
	args = append(args, sorted(settle.Wait))
	args = append(args, parkArgs(settle.Park)...)
	args = append(args, deadArgs(settle.Dead)...)
	return s.sql.settle, append(args, numbers(settle.ClearNotes))
}

// Rows are changed in the order of their ids, so that two settles of the same rows, one of which comes from
// a connection that was given up, wait for each other instead of failing.

func compareIDs(a, b outbox.ID) int { return bytes.Compare(a[:], b[:]) }

func sorted(ids []outbox.ID) []pgtype.UUID {
	return uuids(slices.SortedFunc(slices.Values(ids), compareIDs))
}

func retryArgs(list []core.Retry) []any {
	list = slices.SortedFunc(slices.Values(list), func(a, b core.Retry) int { return compareIDs(a.ID, b.ID) })
	ids, attempts, delays, problems := make([]pgtype.UUID, len(list)), make([]int32, len(list)), make([]int64, len(list)),
		make([]string, len(list))
	states, times := make([]int16, len(list)), make([]pgtype.Timestamptz, len(list))
	for i, retry := range list {
		ids[i], attempts[i], delays[i], problems[i] = uuid(retry.ID), retry.Attempts, micros(retry.Delay),
			readable(retry.Error)
		states[i], times[i] = int16(retry.From.State), timestamp(retry.From.At)
	}
	return []any{ids, attempts, delays, problems, states, times}
}

func parkArgs(list []core.Park) []any {
	list = slices.SortedFunc(slices.Values(list), func(a, b core.Park) int { return compareIDs(a.ID, b.ID) })
	ids, problems := make([]pgtype.UUID, len(list)), make([]string, len(list))
	states, times := make([]int16, len(list)), make([]pgtype.Timestamptz, len(list))
	for i, park := range list {
		ids[i], problems[i] = uuid(park.ID), readable(park.Error)
		states[i], times[i] = int16(park.From.State), timestamp(park.From.At)
	}
	return []any{ids, problems, states, times}
}

func deadArgs(list []core.Death) []any {
	n := len(list)
	list = slices.SortedFunc(slices.Values(list), func(a, b core.Death) int { return compareIDs(a.ID, b.ID) })
	ids, blocking, attempts := make([]pgtype.UUID, n), make([]bool, n), make([]int32, n)
	topics, reasons, details := make([]string, n), make([]string, n), make([]string, n)
	states, times := make([]int16, n), make([]pgtype.Timestamptz, n)
	for i, death := range list {
		ids[i], blocking[i], attempts[i] = uuid(death.ID), death.Blocking, death.Attempts
		topics[i], reasons[i], details[i] = death.Topic, death.Reason, readable(death.Detail)
		states[i], times[i] = int16(death.From.State), timestamp(death.From.At)
	}
	return []any{ids, blocking, attempts, topics, reasons, details, states, times}
}
