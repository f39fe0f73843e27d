package pgstore

import (
	"encoding/binary"
	"fmt"
	"math"
	"time"

	"github.com/jackc/pgx/v5/pgtype"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// eventColumns is how many columns a row of an event has: those of read.sql without the last three.
const eventColumns = 16

// keyColumns is how many columns a held key has. Those of due_keys.sql have their place behind them.
const keyColumns = 7

// decoder turns rows in PostgreSQL's binary form into events. pgx would do it column by column through
// interfaces; at 50,000 rows a second that is most of the time that a read takes.
type decoder struct {
	names map[string]string // namespaces and types seen so far
	err   error             // the first value that is not what it must be
}

// event decodes a row. Payload and headers are copied, once and together, because the row's memory is used
// again for the next one.
func (d *decoder) event(raw [][]byte) core.Event {
	event := core.Event{
		Lane:      d.int16(raw[0]),
		Seq:       d.int64(raw[1]),
		ID:        d.id(raw[2]),
		State:     core.State(d.int16(raw[3])),
		Attempts:  d.int32(raw[4]),
		CreatedAt: d.time(raw[5]),
		Type:      d.intern(raw[8]),
		Aggregate: core.Aggregate{Namespace: d.intern(raw[7]), Type: d.intern(raw[9]), ID: string(raw[10])},
		Tenant:    string(raw[11]),
		DedupeKey: string(raw[12]),
		Stray:     d.fixed(raw[15], 1)[0] != 0,
	}
	if raw[6] != nil {
		event.DueIn = time.Duration(d.int64(raw[6])) * time.Microsecond
	}
	payload, headers := raw[13], raw[14]
	if payload != nil {
		both := make([]byte, len(payload)+len(headers))
		copy(both, payload)
		copy(both[len(payload):], headers)
		event.Payload = both[:len(payload):len(payload)]
		if headers != nil {
			event.Headers = both[len(payload):]
		}
	}
	return event
}

// held decodes a row of held_rows.sql or old_parked.sql.
func (d *decoder) held(raw [][]byte) core.Event {
	event := d.event(raw)
	event.Version = d.int64(raw[eventColumns])
	return event
}

// key decodes a row of held_keys.sql or due_keys.sql.
func (d *decoder) key(raw [][]byte) core.HeldKey {
	key := core.HeldKey{
		Lane:      d.int16(raw[0]),
		State:     core.State(d.int16(raw[1])),
		Aggregate: core.Aggregate{Namespace: d.intern(raw[3]), Type: d.intern(raw[5]), ID: string(raw[6])},
		EventType: d.intern(raw[4]),
	}
	if key.State == core.Retrying {
		key.DueIn = time.Duration(d.int64(raw[2])) * time.Microsecond
	}
	if len(raw) > keyColumns {
		key.Place = core.HeldPlace{At: d.time(raw[keyColumns]), Seq: d.int64(raw[keyColumns+1])}
	}
	return key
}

// pageColumns is how many columns say how far a look has come.
const pageColumns = 4

// page decodes them: the lane, time and number of a row that was looked at, and which it was.
func (d *decoder) page(raw [][]byte) core.Page {
	return core.Page{
		Looked: int(d.int64(raw[3])), Lane: d.int16(raw[0]),
		End: core.HeldPlace{At: d.time(raw[1]), Seq: d.int64(raw[2])},
	}
}

// fixed answers the value if it has this many bytes, and zeros otherwise.
func (d *decoder) fixed(raw []byte, size int) []byte {
	if len(raw) == size {
		return raw
	}
	if d.err == nil {
		d.err = fmt.Errorf("a value has %d bytes, want %d", len(raw), size)
	}
	return make([]byte, size)
}

func (d *decoder) int16(raw []byte) int16 { return int16(binary.BigEndian.Uint16(d.fixed(raw, 2))) }

func (d *decoder) int32(raw []byte) int32 { return int32(binary.BigEndian.Uint32(d.fixed(raw, 4))) }

func (d *decoder) int64(raw []byte) int64  { return int64(binary.BigEndian.Uint64(d.fixed(raw, 8))) }
func (d *decoder) id(raw []byte) outbox.ID { return outbox.ID(d.fixed(raw, 16)) }

// epoch is where PostgreSQL counts its microseconds from, in seconds since 1970.
const epoch = 946_684_800

// time reads a timestamptz. A time.Duration has room for 292 years only, and PostgreSQL for 299,000.
func (d *decoder) time(raw []byte) time.Time {
	micros := d.int64(raw)
	return time.Unix(epoch+micros/1e6, micros%1e6*1000).UTC()
}

// timestamp is a time as the database has it. Infinity was read as a year that no clock shows.
func timestamp(t time.Time) pgtype.Timestamptz {
	seconds := t.Unix() - epoch
	switch {
	case seconds <= math.MinInt64/1_000_000:
		return pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.NegativeInfinity}
	case seconds >= math.MaxInt64/1_000_000:
		return pgtype.Timestamptz{Valid: true, InfinityModifier: pgtype.Infinity}
	default:
		return pgtype.Timestamptz{Valid: true, Time: t}
	}
}

// decodeXIDs reads a bigint[].
func decodeXIDs(raw []byte) ([]uint64, error) { return decodeArray(raw, 8, binary.BigEndian.Uint64) }

// decodeLanes reads a smallint[].
func decodeLanes(raw []byte) ([]int16, error) {
	return decodeArray(raw, 2, func(item []byte) int16 { return int16(binary.BigEndian.Uint16(item)) })
}

// decodeArray reads an array without nulls, of items of this size.
func decodeArray[T any](raw []byte, size int, decode func([]byte) T) ([]T, error) {
	const head, prefix = 12, 4
	if len(raw) < head {
		return nil, fmt.Errorf("an array has %d bytes", len(raw))
	}
	if dimensions := binary.BigEndian.Uint32(raw); dimensions == 0 {
		return nil, nil
	}
	items := raw[head+8:] // behind the one dimension: its length and lower bound
	if len(items)%(prefix+size) != 0 {
		return nil, fmt.Errorf("an array's items have %d bytes", len(items))
	}
	list := make([]T, 0, len(items)/(prefix+size))
	for ; len(items) > 0; items = items[prefix+size:] {
		list = append(list, decode(items[prefix:]))
	}
	return list, nil
}
