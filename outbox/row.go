package outbox

import (
	"crypto/sha256"
	"errors"
	"fmt"
	"time"
)

// row is an event in the form in which it is stored.
type row struct {
	index       int
	id          ID
	contract    *Contract
	event       *Event
	payload     string
	headers     string // JSON, or "" where there are none
	contentHash [sha256.Size]byte
}

// prepare checks all events and brings them into the form in which they are stored.
func prepare(events []Event) ([]row, error) {
	if len(events) == 0 {
		return nil, &FieldError{Field: "events", Problem: "none given"}
	}
	if len(events) > MaxEventsPerEmit {
		return nil, &FieldError{
			Field: "events", Problem: fmt.Sprintf("%d of them, the limit is %d", len(events), MaxEventsPerEmit),
		}
	}
	rows := make([]row, 0, len(events))
	var problems []error
	size := 0
	for i := range events {
		event := &events[i]
		found := event.problems()
		if len(found) == 0 {
			made := event.row(i)
			if len(made.payload) > event.contract.MaxBytes {
				found = [][2]string{
					{
						"data", fmt.Sprintf("the stored payload would be %d bytes, the limit is %d", len(made.payload),
							event.contract.MaxBytes),
					},
				}
			}
			size += len(made.payload)
			rows = append(rows, made)
		}
		for _, pair := range found {
			eventType := event.contract.Type
			if checkName(eventType) != "" {
				eventType = ""
			}
			problems = append(problems, &FieldError{Index: i, EventType: eventType, Field: pair[0], Problem: pair[1]})
		}
	}
	if size > MaxBytesPerEmit {
		problems = append(problems, &FieldError{
			Field: "events", Problem: fmt.Sprintf("%d bytes together, the limit is %d", size, MaxBytesPerEmit),
		})
	}
	return rows, errors.Join(problems...)
}

// row brings a checked event into the form in which it is stored.
func (e *Event) row(index int) row {
	made := row{index: index, id: e.ID, contract: &e.contract, event: e}
	if made.id == (ID{}) {
		made.id = NewID()
	}
	envelope := Envelope{
		Version: e.contract.Version, EventID: made.id, OccurredAt: e.OccurredAt, Actor: e.Actor, Data: e.data,
	}
	if envelope.OccurredAt.IsZero() {
		envelope.OccurredAt = time.Now()
	}
	made.payload = string(envelope.appendTo(make([]byte, 0, len(e.data)+160)))
	if len(e.Headers) > 0 {
		headers, _ := encode(e.Headers) // valid UTF-8; escaped for HTML as well it would outgrow the column's limit
		made.headers = string(headers)
	}
	if e.DedupeKey != "" {
		made.contentHash = contentHash(e.contract.Aggregate, e.AggregateID, e.data)
	}
	return made
}

// contentHash is what two emits under one dedupe key must have in common: never the envelope, whose
// eventId and occurredAt differ on every try. outbox_emit computes the same in SQL.
func contentHash(aggregateType, aggregateID string, data []byte) [sha256.Size]byte {
	content := make([]byte, 0, len(aggregateType)+len(aggregateID)+len(data)+2)
	content = append(append(content, aggregateType...), '\n')
	content = append(append(content, aggregateID...), '\n')
	return sha256.Sum256(append(content, data...))
}

// merge lets one row stand for all events of the call that have the same dedupe key: the database
// cannot meet one key twice in one statement. It would store one id twice: that is refused here.
func merge(rows []row) (*Stmt, error) {
	stmt := &Stmt{of: make([]int, len(rows))}
	type key struct{ namespace, eventType, tenant, dedupe string }
	seen, ids := map[key]int{}, map[ID]bool{}
	var problems []error
	for i, r := range rows {
		at := len(stmt.rows)
		if r.event.DedupeKey != "" {
			stmt.dedupe = true
			k := key{r.contract.Namespace, r.contract.Type, r.event.TenantID, r.event.DedupeKey}
			first, again := seen[k]
			if again {
				if !r.contract.FirstWins && stmt.rows[first].contentHash != r.contentHash {
					problems = append(problems, &DedupeMismatchError{Index: i, EventType: r.contract.Type})
				}
				stmt.of[i] = first
				continue
			}
			seen[k] = at
		}
		if r.event.ID != (ID{}) && ids[r.id] {
			problems = append(problems, &FieldError{
				Index: i, EventType: r.contract.Type, Field: "id", Problem: "another event of the same call has it",
			})
		}
		ids[r.id] = true
		stmt.of[i] = at
		stmt.rows = append(stmt.rows, r)
	}
	return stmt, errors.Join(problems...)
}
