package pgstore

import (
	"cmp"
	"context"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// laneArrays are lanes and how far they are, as the statements take them.
type laneArrays struct {
	lanes     []int16
	tokens    []pgtype.UUID
	floors    []int64
	swept     []int64
	calm      []bool
	needLanes []int16
	needTypes []string
}

func progresses(list []core.Progress) laneArrays {
	arrays := laneArrays{
		lanes: make([]int16, len(list)), tokens: make([]pgtype.UUID, len(list)), floors: make([]int64, len(list)),
		swept: make([]int64, len(list)), calm: make([]bool, len(list)),
		needLanes: []int16{}, needTypes: []string{},
	}
	for i, progress := range list {
		arrays.lanes[i], arrays.tokens[i] = progress.Lane, uuid(progress.Token)
		arrays.floors[i], arrays.swept[i], arrays.calm[i] = progress.Floor, progress.Swept, progress.Calm
		for _, need := range progress.Needs {
			arrays.needLanes, arrays.needTypes = append(arrays.needLanes, progress.Lane), append(arrays.needTypes, need)
		}
	}
	return arrays
}

// Acquire takes up to Max of the listed lanes that are free, the first of the list first.
func (s *Store) Acquire(ctx context.Context, take core.Acquire) (core.AcquireAnswer, error) {
	var answer core.AcquireAnswer
	batch := &pgx.Batch{}
	batch.Queue(s.sql.ownToTake, uuid(take.Relay), uuid(take.Token))
	batch.Queue(s.sql.acquire, numbers(take.Lanes), int32(take.Max), uuid(take.Relay), uuid(take.Token),
		uuid(take.Tenure)).
		Query(func(rows pgx.Rows) (err error) {
			answer.Lanes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a core.Acquired, err error) {
				var noted pgtype.UUID
				err = row.Scan(&a.Lane, &a.Floor, &a.Swept, &a.Crashed, &a.CrashCount, &noted, &a.NotedCount, &answer.Incarnation)
				a.NotedEvent = noted.Bytes
				return a, err //nolint:wrapcheck // wrapped below, with every other error of the batch
			})
			return err //nolint:wrapcheck // as above
		})
	batch.Queue(s.sql.ownLanes, uuid(take.Relay), uuid(take.Token))
	crash.Point("claim.before")
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return core.AcquireAnswer{}, failed("acquire lanes", err)
	}
	if len(answer.Lanes) > 0 {
		crash.Point("claim.after_commit")
	}
	slices.SortFunc(answer.Lanes, func(a, b core.Acquired) int {
		return cmp.Compare(slices.Index(take.Lanes, a.Lane), slices.Index(take.Lanes, b.Lane))
	})
	return answer, nil
}

// Release gives lanes back; those whose token does not match any more are left alone.
func (s *Store) Release(ctx context.Context, give core.Release) error {
	lanes := progresses(give.Lanes)
	batch := &pgx.Batch{}
	batch.Queue(s.sql.ownToGive, uuid(give.Relay), uuid(give.Token))
	batch.Queue(s.sql.release, uuid(give.Relay), uuid(give.Token), lanes.lanes, lanes.tokens, lanes.floors, lanes.calm,
		lanes.needLanes, lanes.needTypes, give.Incarnation, uuids(give.Tokens), give.End, lanes.swept)
	batch.Queue(s.sql.ownLanes, uuid(give.Relay), uuid(give.Token))
	if give.End {
		batch.Queue(s.sql.leave, uuid(give.Relay), uuid(give.Token))
	}
	crash.Point("release.before")
	err := s.pool.SendBatch(ctx, batch).Close()
	crash.Point("release.after")
	return failed("release lanes", err)
}

// Note writes down which event of the lane is about to be sent alone. False: the lane is lost.
func (s *Store) Note(ctx context.Context, note core.Note) (bool, error) {
	owner, lane, token := note.Owner, note.Tenure.Lane, uuid(note.Tenure.Token)
	crash.Point("note.before")
	if note.Event == (outbox.ID{}) {
		answer, err := s.pool.Exec(ctx, s.sql.unnote, uuid(owner.Relay), uuid(owner.Token), lane, token, note.Outlived)
		return answer.RowsAffected() == 1, failed("take back a note", err)
	}
	answer, err := s.pool.Exec(ctx, s.sql.note, uuid(owner.Relay), uuid(owner.Token), lane, token, uuid(note.Event))
	crash.Point("note.after")
	return answer.RowsAffected() == 1, failed("note an event", err)
}
