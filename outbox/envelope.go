package outbox

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"
)

// An Envelope is the stored payload of every event, and the body of its message. The JSON names are
// part of the contract with consumers and never change.
type Envelope struct {
	Version    int             `json:"version"`
	EventID    ID              `json:"eventId"`
	OccurredAt time.Time       `json:"occurredAt"`
	Actor      *Actor          `json:"actor,omitempty"`
	Data       json.RawMessage `json:"data"`
}

// An Actor is who caused an event.
type Actor struct {
	Type string `json:"type"`
	ID   string `json:"id"`
	Name string `json:"name,omitempty"`
}

// DecodeEnvelope reads a stored payload. The names must match to the letter, and all but actor must be
// there: encoding/json alone would take EVENTID for eventId and a missing version for zero.
func DecodeEnvelope(payload []byte) (Envelope, error) {
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(payload, &fields); err != nil || fields == nil {
		return Envelope{}, errors.New("outbox: the payload is not a JSON object")
	}
	var envelope Envelope
	for _, field := range []struct {
		name     string
		into     any
		optional bool
	}{
		{name: "version", into: &envelope.Version},
		{name: "eventId", into: &envelope.EventID},
		{name: "occurredAt", into: &envelope.OccurredAt},
		{name: "actor", into: &envelope.Actor, optional: true},
		{name: "data", into: &envelope.Data},
	} {
		value, given := fields[field.name]
		delete(fields, field.name)
		if !given && field.optional {
			continue
		}
		if !given || bytes.Equal(value, []byte("null")) {
			return Envelope{}, fmt.Errorf("outbox: envelope: %s is missing or null", field.name)
		}
		if err := json.Unmarshal(value, field.into); err != nil {
			return Envelope{}, fmt.Errorf("outbox: envelope: %s has the wrong form", field.name)
		}
	}
	if len(fields) > 0 {
		return Envelope{}, errors.New("outbox: the envelope has a field besides version, eventId, occurredAt, actor and data")
	}
	if envelope.Version < 1 {
		return Envelope{}, errors.New("outbox: envelope: version is not a positive number")
	}
	return envelope, nil
}

// OccurredAt reads when the event of a stored payload occurred. It is for payloads that were checked before: of what
// this library wrote it looks at no more than it needs.
func OccurredAt(payload []byte) (time.Time, error) {
	if envelope, ours := canonical(payload); ours {
		return envelope.OccurredAt, nil
	}
	envelope, err := DecodeEnvelope(payload)
	return envelope.OccurredAt, err
}

// canonical takes apart an envelope in the form that this library writes, without an actor, in one step. The
// data is not looked at: whoever gets it must. False: it has another form, and may be a good one.
func canonical(payload []byte) (Envelope, bool) {
	var e Envelope
	rest, ok := bytes.CutPrefix(payload, []byte(`{"version":`))
	digits := bytes.IndexByte(rest, ',')
	if !ok || digits < 1 || digits > 9 || rest[0] == '0' {
		return e, false
	}
	for _, c := range rest[:digits] {
		if c < '0' || c > '9' {
			return e, false
		}
		e.Version = 10*e.Version + int(c-'0')
	}
	rest, ok = bytes.CutPrefix(rest[digits:], []byte(`,"eventId":"`))
	if !ok || len(rest) < 36 {
		return e, false
	}
	var err error
	if e.EventID, err = ParseID(string(rest[:36])); err != nil {
		return e, false
	}
	rest, ok = bytes.CutPrefix(rest[36:], []byte(`","occurredAt":"`))
	end := bytes.IndexByte(rest, '"')
	if !ok || end < 0 {
		return e, false
	}
	if err := e.OccurredAt.UnmarshalText(rest[:end]); err != nil {
		return e, false
	}
	rest, ok = bytes.CutPrefix(rest[end:], []byte(`","data":`))
	if !ok || len(rest) < 3 || rest[0] != '{' || rest[len(rest)-1] != '}' {
		return e, false
	}
	e.Data = rest[: len(rest)-1 : len(rest)-1]
	return e, true
}

// appendTo writes the envelope as it is stored. Data goes in untouched; json.Marshal would compact it.
func (e *Envelope) appendTo(to []byte) []byte {
	to = append(to, `{"version":`...)
	to = strconv.AppendInt(to, int64(e.Version), 10)
	to = append(to, `,"eventId":"`...)
	to = append(to, e.EventID.String()...)
	to = append(to, `","occurredAt":"`...)
	to = e.OccurredAt.UTC().AppendFormat(to, "2006-01-02T15:04:05.000000Z")
	to = append(to, '"')
	if e.Actor != nil {
		actor, _ := json.Marshal(e.Actor) // three strings
		to = append(append(to, `,"actor":`...), actor...)
	}
	to = append(append(to, `,"data":`...), e.Data...)
	return append(to, '}')
}

// TestType is the event type of messages that show whether a broker takes something, as `outboxctl topics test --send`
// publishes them. They are no events: they stand in no outbox, have no number, and carry the attribute test. Consumers
// acknowledge them and do not handle them.
const TestType = "posthaste.test"
