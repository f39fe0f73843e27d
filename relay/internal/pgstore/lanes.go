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

// Heartbeat says that the relay is alive, renews its lanes and answers who else is there.
func (s *Store) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	var answer core.HeartbeatAnswer
	lanes := renewals(beat.Lanes)
	batch := &pgx.Batch{}
	batch.Queue(s.sql.register, uuid(beat.Relay), beat.Name, beat.Version, texts(beat.KnownTypes), micros(beat.Lease))
	batch.Queue(s.sql.renew, lanes.lanes, lanes.tokens, lanes.floors, micros(beat.Lease), lanes.needLanes, lanes.needTypes,
		beat.Incarnation, lanes.calm).
		Query(func(rows pgx.Rows) (err error) {
			answer.Renewed, err = pgx.CollectRows(rows, pgx.RowTo[int16])
			return err //nolint:wrapcheck // wrapped below, with every other error of the batch
		})
	batch.Queue(s.sql.server).QueryRow(func(row pgx.Row) error {
		return row.Scan(&answer.Incarnation)
	})
	batch.Queue(s.sql.peers).Query(func(rows pgx.Rows) (err error) {
		answer.Relays, err = pgx.CollectRows(rows, peer)
		return err //nolint:wrapcheck // as above
	})
	batch.Queue(s.sql.lanes).Query(func(rows pgx.Rows) (err error) {
		answer.Lanes, err = pgx.CollectRows(rows, laneView)
		return err //nolint:wrapcheck // as above
	})
	batch.Queue(s.sql.pauses).Query(func(rows pgx.Rows) (err error) {
		answer.Pauses, err = pgx.CollectRows(rows, pgx.RowToStructByPos[core.Pause])
		return err //nolint:wrapcheck // as above
	})
	if len(beat.Lanes) > 0 {
		crash.Point("renew.before")
	}
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return core.HeartbeatAnswer{}, failed("heartbeat", err)
	}
	if len(beat.Lanes) > 0 {
		crash.Point("renew.after")
	}
	slices.Sort(answer.Renewed)
	return answer, nil
}

func peer(row pgx.CollectableRow) (p core.Peer, err error) {
	var id pgtype.UUID
	err = row.Scan(&id, &p.KnownTypes)
	p.ID = id.Bytes
	return p, err //nolint:wrapcheck // wrapped by the caller
}

func laneView(row pgx.CollectableRow) (view core.LaneView, err error) {
	var owner pgtype.UUID
	err = row.Scan(&view.Lane, &owner, &view.Free, &view.Needs)
	view.Owner = owner.Bytes
	return view, err //nolint:wrapcheck // wrapped by the caller
}

// laneArrays are renewals as the statements take them.
type laneArrays struct {
	lanes     []int16
	tokens    []pgtype.UUID
	floors    []int64
	calm      []bool
	needLanes []int16
	needTypes []string
}

func renewals(list []core.Renewal) laneArrays {
	arrays := laneArrays{
		lanes: make([]int16, len(list)), tokens: make([]pgtype.UUID, len(list)), floors: make([]int64, len(list)),
		calm:      make([]bool, len(list)),
		needLanes: []int16{}, needTypes: []string{},
	}
	for i, renewal := range list {
		arrays.lanes[i], arrays.tokens[i], arrays.floors[i], arrays.calm[i] = renewal.Lane, uuid(renewal.Token),
			renewal.Floor, renewal.Calm
		for _, need := range renewal.Needs {
			arrays.needLanes, arrays.needTypes = append(arrays.needLanes, renewal.Lane), append(arrays.needTypes, need)
		}
	}
	return arrays
}

// Acquire takes up to Max of the listed lanes that are free or expired, the first of the list first.
func (s *Store) Acquire(ctx context.Context, take core.Acquire) (core.AcquireAnswer, error) {
	crash.Point("claim.before")
	rows, err := s.pool.Query(ctx, s.sql.acquire, numbers(take.Lanes), int32(take.Max), uuid(take.Relay), uuid(take.Token),
		micros(take.Lease), take.Away)
	if err != nil {
		return core.AcquireAnswer{}, failed("acquire lanes", err)
	}
	var answer core.AcquireAnswer
	answer.Lanes, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (a core.Acquired, err error) {
		var noted pgtype.UUID
		err = row.Scan(&a.Lane, &a.Floor, &a.Crashed, &a.CrashCount, &noted, &a.NotedCount, &answer.Incarnation)
		a.NotedEvent = noted.Bytes
		return a, err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
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
	batch := &pgx.Batch{}
	if len(give.Lanes) > 0 {
		lanes := renewals(give.Lanes)
		batch.Queue(s.sql.release, lanes.lanes, lanes.tokens, lanes.floors, lanes.needLanes, lanes.needTypes,
			give.Incarnation, lanes.calm)
	}
	if len(give.Tokens) > 0 {
		batch.Queue(s.sql.releaseTokens, uuids(give.Tokens))
	}
	if batch.Len() == 0 {
		return nil
	}
	crash.Point("release.before")
	err := s.pool.SendBatch(ctx, batch).Close()
	crash.Point("release.after")
	return failed("release lanes", err)
}

// Note writes down which event of the lane is about to be sent alone. False: the lane is lost.
func (s *Store) Note(ctx context.Context, tenure core.Tenure, event outbox.ID, outlived bool) (bool, error) {
	crash.Point("note.before")
	answer, err := s.pool.Exec(ctx, s.sql.note, tenure.Lane, uuid(tenure.Token), pgtype.UUID{
		Bytes: event, Valid: event != outbox.ID{},
	}, outlived)
	crash.Point("note.after")
	return answer.RowsAffected() == 1, failed("note an event", err)
}
