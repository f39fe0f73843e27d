package pgstore

import (
	"bytes"
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Settle writes what became of events, if the lanes are still held; else it changes nothing. An event may
// be in one of the lists only.
func (s *Store) Settle(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	beforeSettle(settle)
	answer, settled, err := core.SettleAnswer{}, false, error(nil)
	if onlyPublished(settle) {
		answer, settled, err = s.settlePublished(ctx, settle)
	}
	if err == nil && !settled {
		answer, err = s.settleAll(ctx, settle)
	}
	if err != nil {
		return core.SettleAnswer{}, failed("settle", err)
	}
	afterSettle(settle)
	return answer, nil
}

// onlyPublished tells that nothing went wrong, and nothing else is to be done.
func onlyPublished(settle *core.Settle) bool {
	return len(settle.Published) == settle.Size() && len(settle.ClearNotes) == 0
}

// settlePublished settles events that were ready, and tells whether that was all: one that is held by now, or has been
// settled before, is left to the statement that looks.
func (s *Store) settlePublished(ctx context.Context, settle *core.Settle) (core.SettleAnswer, bool, error) {
	var answer core.SettleAnswer
	var at, count int64
	if err := s.pool.QueryRow(ctx, s.sql.settlePublished, publishedArgs(settle)...).
		Scan(&answer.Applied, &answer.Held, &at, &count); err != nil {
		return core.SettleAnswer{}, false, err //nolint:wrapcheck // wrapped by the caller
	}
	answer.At = time.UnixMicro(at)
	return answer, !answer.Applied || count == int64(len(settle.Published)), nil
}

// publishedArgs are the arguments of settle_published.sql. By number, which is how the rows stand in the table: two
// settles of the same rows, one of which comes from a connection that was given up, wait for each other instead of
// failing.
func publishedArgs(settle *core.Settle) []any {
	lanes, seqs := make([]int16, len(settle.Published)), make([]int64, len(settle.Published))
	published := slices.SortedFunc(slices.Values(settle.Published), func(a, b core.Found) int {
		return cmp.Compare(a.Seq, b.Seq)
	})
	for i, found := range published {
		lanes[i], seqs[i] = found.Lane, found.Seq
	}
	lowest, highest := span(seqs)
	return []any{uuid(settle.Relay), uuid(settle.Token), numbers(settle.Lanes), lanes, seqs, lowest, highest}
}

// settleAll settles whatever there is.
func (s *Store) settleAll(ctx context.Context, settle *core.Settle) (core.SettleAnswer, error) {
	changes := changesOf(settle)
	var answer core.SettleAnswer
	var at int64
	var unchanged []int64
	if err := s.pool.QueryRow(ctx, s.sql.settle, changes.args(settle)...).
		Scan(&answer.Applied, &answer.Held, &at, &unchanged); err != nil {
		return core.SettleAnswer{}, err //nolint:wrapcheck // wrapped by the caller
	}
	answer.At = time.UnixMicro(at)
	for _, number := range unchanged {
		answer.Unchanged = append(answer.Unchanged, changes[number-1].ID)
	}
	slices.SortFunc(answer.Unchanged, func(a, b outbox.ID) int { return bytes.Compare(a[:], b[:]) })
	return answer, nil
}

// change is what becomes of one event.
type change struct {
	core.Found
	next                  core.State
	attempts              int32
	delay                 time.Duration
	topic, reason, detail string
	tried                 core.Tried
}

type changes []change

// changesOf are those of a settle, by lane and number: the order in which held rows are locked.
func changesOf(settle *core.Settle) changes {
	list := make(changes, 0, settle.Size())
	for _, found := range settle.Published {
		list = append(list, change{Found: found, next: core.Published})
	}
	for _, retry := range settle.Retry {
		list = append(list, change{
			Found: retry.Found, next: core.Retrying, attempts: retry.Attempts, delay: retry.Delay, detail: retry.Error,
			tried: retry.Tried,
		})
	}
	for _, found := range settle.Wait {
		list = append(list, change{Found: found, next: core.Waiting})
	}
	for _, park := range settle.Park {
		list = append(list, change{Found: park.Found, next: core.Parked, detail: park.Error})
	}
	for i := range settle.Dead {
		death := &settle.Dead[i]
		next := core.Dead
		if death.Blocking {
			next = core.DeadBlocking
		}
		list = append(list, change{
			Found: death.Found, next: next, attempts: death.Attempts, topic: death.Topic, reason: death.Reason,
			detail: death.Detail, tried: death.Tried,
		})
	}
	slices.SortFunc(list, func(a, b change) int { return cmp.Or(cmp.Compare(a.Lane, b.Lane), cmp.Compare(a.Seq, b.Seq)) })
	return list
}

// args are the arguments of settle.sql: the changes, with the lowest and the highest number.
func (c changes) args(settle *core.Settle) []any {
	n := len(c)
	lanes, seqs, versions, nexts := make([]int16, n), make([]int64, n), make([]int64, n), make([]int16, n)
	attempts, delays := make([]int32, n), make([]int64, n)
	topics, reasons, details := make([]string, n), make([]string, n), make([]string, n)
	triedClasses, triedTopics := make([]string, n), make([]string, n)
	for i := range c {
		lanes[i], seqs[i], versions[i], nexts[i] = c[i].Lane, c[i].Seq, c[i].Version, int16(c[i].next)
		attempts[i], delays[i] = c[i].attempts, micros(c[i].delay)
		topics[i], reasons[i], details[i] = c[i].topic, c[i].reason, readable(c[i].detail)
		if c[i].tried.Class != core.Acknowledged {
			triedClasses[i], triedTopics[i] = c[i].tried.Class.String(), c[i].tried.Topic
		}
	}
	lowest, highest := span(seqs)
	return []any{
		uuid(settle.Relay), uuid(settle.Token), numbers(settle.Lanes), lanes, seqs, versions, nexts, attempts, delays,
		topics, reasons, details, lowest, highest, numbers(settle.ClearNotes), triedClasses, triedTopics,
	}
}

// span is the lowest and the highest of numbers: where the table is in parts, the others are not looked at.
func span(seqs []int64) (lowest, highest int64) {
	if len(seqs) == 0 {
		return 0, 0
	}
	return slices.Min(seqs), slices.Max(seqs)
}
