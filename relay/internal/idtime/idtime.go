// Package idtime reads the time in an event's id, a version 7, and finds the ids of a time.
package idtime

import (
	"encoding/binary"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Last is above every id of an event: a version 7 is below it.
var Last = outbox.ID{255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255, 255}

// Least is the least id that can have been made at a moment: an id begins with its time.
func Least(at time.Time) outbox.ID {
	var id outbox.ID
	if ms := at.UnixMilli(); ms > 0 {
		binary.BigEndian.PutUint64(id[:8], uint64(ms)<<16)
	}
	return id
}

// Of is the time at which an id was made, by its maker's clock.
func Of(id outbox.ID) time.Time {
	return time.UnixMilli(int64(binary.BigEndian.Uint64(id[:8]) >> 16)).UTC()
}
