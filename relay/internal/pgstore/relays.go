package pgstore

import (
	"context"
	"errors"
	"slices"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Heartbeat says that the relay is alive and how far it is, and answers who else is there. A new owner's row comes
// with its first beat, in one transaction.
func (s *Store) Heartbeat(ctx context.Context, said core.Heartbeat) (core.HeartbeatAnswer, error) {
	answer := core.HeartbeatAnswer{Ended: true}
	batch := &pgx.Batch{}
	owner := []any{uuid(said.Relay), uuid(said.Token)}
	if who := said.Register; who != nil {
		batch.Queue(s.sql.register, append(owner, who.Name, who.Version)...)
		batch.Queue(s.sql.registerKnown, owner[0], texts(who.Types), texts(who.Topics))
		batch.Queue(s.sql.forgetRelays)
	}
	own, args := s.sql.own, owner
	if said.Number > 0 {
		lanes := progresses(said.Lanes)
		own, args = s.sql.beat, append(slices.Clone(owner), said.Number, micros(said.Lease), lanes.lanes, lanes.floors,
			lanes.calm, lanes.needLanes, lanes.needTypes, said.Incarnation, said.From, said.Below, lanes.swept)
	}
	batch.Queue(own, args...).Query(func(rows pgx.Rows) error {
		_, err := pgx.ForEachRow(rows, []any{&answer.Held}, func() error { answer.Ended = false; return nil })
		return err //nolint:wrapcheck // wrapped below, with every other error of the batch
	})
	standby := false
	batch.Queue(s.sql.server).QueryRow(func(row pgx.Row) error { return row.Scan(&answer.Incarnation, &standby) })
	batch.Queue(s.sql.peers, uuids(said.Met)).Query(func(rows pgx.Rows) (err error) {
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
	batch.Queue(s.sql.limits).Query(func(rows pgx.Rows) (err error) {
		answer.Limits, err = pgx.CollectRows(rows, pgx.RowToStructByPos[core.Limit])
		return err //nolint:wrapcheck // as above
	})
	batch.Queue(s.sql.requested).QueryRow(func(row pgx.Row) error { return row.Scan(&answer.Requested) })
	beforeBeat(&said)
	if err := s.pool.SendBatch(ctx, batch).Close(); err != nil {
		return core.HeartbeatAnswer{}, failed("heartbeat", err)
	}
	if standby { // a look writes nothing, so it does not fail there by itself
		return core.HeartbeatAnswer{}, failed("heartbeat", errors.New("the server is in recovery"))
	}
	afterBeat(&said)
	slices.Sort(answer.Held)
	return answer, nil
}

func peer(row pgx.CollectableRow) (p core.Peer, err error) {
	var id pgtype.UUID
	err = row.Scan(&id, &p.Expired, &p.KnownTypes)
	p.ID = id.Bytes
	return p, err //nolint:wrapcheck // wrapped by the caller
}

func laneView(row pgx.CollectableRow) (view core.LaneView, err error) {
	var owner, token pgtype.UUID
	err = row.Scan(&view.Lane, &owner, &token, &view.Needs)
	view.Owner, view.Token = owner.Bytes, token.Bytes
	return view, err //nolint:wrapcheck // wrapped by the caller
}

// EndExpired ends relays that have not beaten for a lease, and frees their lanes. The level is asked for, because the
// role or the database may say another, in which a beat could be missed.
func (s *Store) EndExpired(ctx context.Context, end core.EndExpired) (ended []outbox.ID, err error) {
	crash.Point("end.before")
	err = pgx.BeginTxFunc(ctx, s.pool, pgx.TxOptions{IsoLevel: pgx.ReadCommitted}, func(tx pgx.Tx) error {
		rows, err := tx.Query(ctx, s.sql.endExpired, uuid(end.Relay), int32(end.Max), end.Away)
		if err != nil {
			return err //nolint:wrapcheck // wrapped below
		}
		ids, err := pgx.CollectRows(rows, pgx.RowTo[pgtype.UUID])
		for _, id := range ids {
			ended = append(ended, id.Bytes)
		}
		return err //nolint:wrapcheck // wrapped below
	})
	if err != nil {
		return nil, failed("end expired relays", err)
	}
	if len(ended) > 0 {
		crash.Point("end.after")
	}
	return ended, nil
}
