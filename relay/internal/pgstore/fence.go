package pgstore

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Fence lists who may still make events appear below the sequence's value.
//
// The three statements are one batch and so one transaction, but three moments: the sequence and the
// locks are read as they are then, and not as a snapshot has them. The order is the point. Whoever draws a
// number takes the lock first, so a number that the first statement saw belongs to somebody whom the second
// one sees, or who has ended. And the numbers are used only after the third: a crash would bring a value
// back that was never made durable.
func (s *Store) Fence(ctx context.Context) (core.Fence, error) {
	var fence core.Fence
	err := s.strictly(ctx, func(conn *pgx.Conn) error {
		batch := &pgx.Batch{}
		batch.Queue(s.sql.fenceSequence).QueryRow(func(row pgx.Row) error {
			return row.Scan(&fence.Last, &fence.Standby, &fence.Incarnation)
		})
		batch.Queue(s.sql.fenceWriters, s.sequence).Query(func(rows pgx.Rows) (err error) {
			fence.Writers, err = writers(rows)
			return err
		})
		batch.Queue(s.sql.fenceBarrier)
		return conn.SendBatch(ctx, batch).Close()
	})
	if err != nil {
		return core.Fence{}, failed("fence", err)
	}
	return fence, nil
}

// writers reads the list: a row for every transaction id of a writer, the subtransactions' own included.
func writers(rows pgx.Rows) ([]core.Writer, error) {
	var list []core.Writer
	var vxid, xid, horizon string
	_, err := pgx.ForEachRow(rows, []any{&vxid, &xid, &horizon}, func() error {
		writer := core.Writer{VXID: vxid}
		if xid != "" {
			short, err := strconv.ParseUint(xid, 10, 32)
			if err != nil {
				return fmt.Errorf("transaction id: %w", err)
			}
			xmax, err := strconv.ParseUint(horizon, 10, 64)
			if err != nil {
				return fmt.Errorf("snapshot: %w", err)
			}
			writer.XID = extend(uint32(short), xmax)
		}
		at := slices.IndexFunc(list, func(w core.Writer) bool { return w.VXID == vxid })
		switch {
		case at < 0:
			list = append(list, writer)
		case writer.XID != 0 && (list[at].XID == 0 || writer.XID < list[at].XID):
			// The transaction's own id is the lowest: it was assigned before those of its subtransactions.
			list[at].XID = writer.XID
		}
		return nil
	})
	return list, err //nolint:wrapcheck // wrapped by the caller
}

// extend gives a transaction id the epoch that it must have, being less than half of all ids away from
// the snapshot's. It may be newer than the snapshot, so the epoch of the snapshot is not it.
func extend(xid uint32, xmax uint64) uint64 {
	return xmax + uint64(int64(int32(xid-uint32(xmax))))
}

// Barrier returns when everything is durable that reads have seen on this incarnation of the server.
func (s *Store) Barrier(ctx context.Context, incarnation string) error {
	return failed("barrier", s.strictly(ctx, func(conn *pgx.Conn) error {
		var here string
		crash.Point("barrier.before")
		if err := conn.QueryRow(ctx, s.sql.barrier).Scan(nil, nil, nil, &here); err != nil {
			return err //nolint:wrapcheck // wrapped above
		}
		if incarnation != "" && incarnation != here {
			return errors.New("the server was restarted, or is another one, since the read")
		}
		crash.Point("barrier.after")
		return nil
	}))
}
