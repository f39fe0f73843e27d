package pgstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Read reads ready rows of lanes, in order, above each lane's bound.
func (s *Store) Read(ctx context.Context, read core.Read) (core.ReadAnswer, error) {
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	rows, err := s.pool.Query(ctx, s.sql.read, s.decoded(readArgs(read)...)...)
	if err != nil {
		return core.ReadAnswer{}, failed("read", err)
	}
	defer rows.Close()
	answer, complete, err := readRows(rows, read.MaxBytes)
	if err != nil {
		return core.ReadAnswer{}, failed("read", err)
	}
	if !complete {
		// The connection goes, and the server is told to stop. Receiving the rest could take longer than a statement may,
		// on a slow link, and what was received would be lost with it.
		giveUp()
		rows.Close()
		return answer, nil
	}
	rows.Close()
	if err := rows.Err(); err != nil {
		return core.ReadAnswer{}, failed("read", err)
	}
	return answer, nil
}

// allNumbers is a window without an end. A bound and this are no more than a bigint holds.
const allNumbers = 1 << 62

func readArgs(read core.Read) []any {
	n := len(read.Lanes)
	lanes, w, c := make([]int16, n), make([]int64, n), make([]int64, n)
	limits, windows := make([]int32, n), make([]int64, n)
	for i, lane := range read.Lanes {
		lanes[i], w[i], c[i], limits[i] = lane.Lane, lane.W, lane.C, int32(lane.Limit)
		windows[i] = cmp.Or(lane.Window, allNumbers)
	}
	xids, lows := make([]int64, len(read.Writers)), make([]int64, len(read.Writers))
	for i, writer := range read.Writers {
		xids[i], lows[i] = int64(writer.XID), writer.Low
	}
	args := append([]any{lanes, w, c, limits, xids, lows}, asker(read.Owner)...)
	return append(args, texts(read.Exclude), windows)
}

// spare is how many bytes behind the bound are received and dropped: that costs less than another connection.
const spare = 64 << 10

// readRows reads the sentinel and the events, until they are maxBytes. It tells whether it has seen the end of them.
func readRows(rows pgx.Rows, maxBytes int) (answer core.ReadAnswer, complete bool, err error) {
	decode := decoder{names: map[string]string{}}
	sentinel, size, dropped := false, 0, 0
	for rows.Next() {
		raw := rows.RawValues()
		if len(raw) != eventColumns+3 {
			return answer, false, fmt.Errorf("%d columns, want %d", len(raw), eventColumns+3)
		}
		switch {
		case raw[0] == nil:
			if err := readSentinel(raw, &answer); err != nil {
				return answer, false, err
			}
			sentinel = true
		case answer.Stopped:
			for _, value := range raw {
				dropped += len(value)
			}
		default:
			event := decode.event(raw)
			answer.Events = append(answer.Events, event)
			size += event.Bytes()
			answer.Stopped = size >= maxBytes
		}
		if decode.err != nil {
			return answer, false, decode.err
		}
		if sentinel && answer.Stopped && dropped+size/len(answer.Events) > spare { // the next row is not in it any more
			return answer, false, nil
		}
	}
	if err := rows.Err(); err != nil {
		return answer, false, err //nolint:wrapcheck // wrapped by the caller
	}
	if !sentinel {
		return answer, false, errors.New("the answer does not say which writers have ended")
	}
	return answer, true, nil
}

// readSentinel reads the row that is there when nothing else is.
func readSentinel(raw [][]byte, answer *core.ReadAnswer) (err error) {
	if answer.Gone, err = decodeXIDs(raw[eventColumns]); err != nil {
		return err
	}
	if answer.Lost, err = decodeLanes(raw[eventColumns+1]); err != nil {
		return err
	}
	answer.Incarnation = string(raw[eventColumns+2])
	return nil
}

// Sweep lists ready rows at or below each floor and above its Above, at most limit. There must be none.
func (s *Store) Sweep(ctx context.Context, sweep core.Sweep) (answer core.SweepAnswer, err error) {
	n := len(sweep.Floors)
	lanes, numbers, above := make([]int16, n), make([]int64, n), make([]int64, n)
	for i, floor := range sweep.Floors {
		lanes[i], numbers[i], above[i] = floor.Lane, floor.Seq, floor.Above
	}
	args := append([]any{lanes, numbers, int32(sweep.Limit), above}, asker(sweep.Owner)...)
	answer.Seen, err = s.scan(ctx, "sweep", s.sql.sweep, args, func(decode *decoder, raw [][]byte) {
		answer.Found = append(answer.Found, core.Floor{Lane: decode.int16(raw[0]), Seq: decode.int64(raw[1])})
	})
	return answer, err
}

// intern keeps one copy of a name that many rows of an answer have.
func (d *decoder) intern(raw []byte) string {
	if name, ok := d.names[string(raw)]; ok { // this conversion does not allocate
		return name
	}
	name := strings.Clone(string(raw))
	d.names[name] = name
	return name
}
