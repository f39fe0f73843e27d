package check

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"

	"github.com/posthaste-dev/posthaste/outbox"
)

// ID is an event's id.
type ID = outbox.ID

// Sum is the SHA-256 of what must not change on the way. The zero value stands for "nothing".
type Sum [sha256.Size]byte

// SumOf returns the sum of the bytes, and the zero Sum of none.
func SumOf(data []byte) Sum {
	if len(data) == 0 {
		return Sum{}
	}
	return sha256.Sum256(data)
}

// MarshalText writes hexadecimal digits.
func (s Sum) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, s[:]), nil }

// UnmarshalText reads hexadecimal digits.
func (s *Sum) UnmarshalText(text []byte) error {
	if len(text) != 2*len(s) {
		return errors.New("check: a sum has 64 hexadecimal digits")
	}
	if _, err := hex.Decode(s[:], text); err != nil {
		return errors.New("check: a sum has hexadecimal digits only")
	}
	return nil
}

// Outcome is what a producer knows about its transaction.
type Outcome string

// The outcomes of a commit. The zero value says that the transaction has begun.
const (
	Begun   Outcome = ""
	OK      Outcome = "ok"      // the commit was acknowledged
	Failed  Outcome = "failed"  // it is certain that nothing was committed
	Unknown Outcome = "unknown" // the answer never came
	// Undone: it committed durably, and a promotion of a standby that was behind took it back.
	Undone Outcome = "undone"
)

// Tx is what a producer writes down: once with its events before it sends COMMIT, once with the outcome
// after the answer. A producer that dies in between leaves the transaction begun. Whoever reads the
// business row afterwards adds a third record with OK or Failed. A single record with both is a
// transaction that was never in doubt.
type Tx struct {
	// Key names the transaction, once in a run.
	Key string `json:"key"`
	// Events are those that it created; not those that a dedupe key found already enqueued.
	Events  []Event `json:"events,omitempty"`
	Outcome Outcome `json:"outcome,omitempty"`
}

// Event is one event as it was emitted.
type Event struct {
	ID    ID     `json:"id"`
	Type  string `json:"type,omitempty"`
	Topic string `json:"topic"`
	// Aggregate is namespace, type and id in one string.
	Aggregate string `json:"aggregate"`
	// Version was taken under the aggregate's row lock and grows per aggregate and topic. 0: the writers
	// of this aggregate did not exclude one another, so there is no order to check.
	Version uint64 `json:"version,omitempty"`
	// Key is the key that the broker must show.
	Key     string `json:"key,omitempty"`
	Payload Sum    `json:"payload"`
	Headers Sum    `json:"headers,omitzero"`
}
