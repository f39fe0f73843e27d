package outbox

import (
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"sync"
	"time"
)

// ID is an event's id, a UUIDv7. It converts to and from any other UUID type whose underlying type is
// [16]byte.
type ID [16]byte

// clock hands out the leading 60 bits of ids: milliseconds and, in rand_a, a fraction of the
// millisecond. It never goes back, so that ids of one process sort in the order they were made even
// when the wall clock steps backwards.
var clock struct {
	sync.Mutex
	last uint64
}

// NewID returns a new UUIDv7, greater than every id that this process made before.
func NewID() ID {
	clock.Lock()
	now := uint64(time.Now().UnixNano()) // positive until the year 2262
	ticks := now/1e6<<12 | (now%1e6)<<12/1e6
	if ticks <= clock.last {
		ticks = clock.last + 1
	}
	clock.last = ticks
	clock.Unlock()

	var id ID
	binary.BigEndian.PutUint64(id[:8], ticks>>12<<16|0x7000|ticks&0xfff)
	_, _ = rand.Read(id[8:]) // documented never to fail
	id[8] = id[8]&0x3f | 0x80
	return id
}

// ParseID reads the hyphenated form.
func ParseID(s string) (ID, error) {
	var id ID
	if len(s) != 36 || s[8] != '-' || s[13] != '-' || s[18] != '-' || s[23] != '-' {
		return ID{}, errors.New("outbox: an id is a UUID in its hyphenated form, 36 characters")
	}
	digits := s[:8] + s[9:13] + s[14:18] + s[19:23] + s[24:]
	if _, err := hex.Decode(id[:], []byte(digits)); err != nil {
		return ID{}, errors.New("outbox: an id has hexadecimal digits only")
	}
	return id, nil
}

// String returns the hyphenated form.
func (id ID) String() string {
	text, _ := id.MarshalText()
	return string(text)
}

// MarshalText writes the hyphenated form.
func (id ID) MarshalText() ([]byte, error) {
	text := make([]byte, 36)
	hex.Encode(text, id[:4])
	text[8] = '-'
	hex.Encode(text[9:], id[4:6])
	text[13] = '-'
	hex.Encode(text[14:], id[6:8])
	text[18] = '-'
	hex.Encode(text[19:], id[8:10])
	text[23] = '-'
	hex.Encode(text[24:], id[10:])
	return text, nil
}

// UnmarshalText reads the hyphenated form.
func (id *ID) UnmarshalText(text []byte) error {
	parsed, err := ParseID(string(text))
	if err != nil {
		return err
	}
	*id = parsed
	return nil
}

// isVersion7 tells whether the id says of itself that it is a UUIDv7.
func (id ID) isVersion7() bool { return id[6]>>4 == 7 && id[8]>>6 == 2 }
