package outbox

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// A Receipt says what became of an emitted event.
type Receipt struct {
	// ID is the event's id; the first event's where Created is false.
	ID ID
	// Created is false when the dedupe key was used before, with the same content.
	Created bool
}

// Receipts reads the answer of the statement: one receipt an event, in the order they were given. A
// key that holds other content is a [DedupeMismatchError], and nothing was written.
func (s *Stmt) Receipts(answer string) ([]Receipt, error) {
	byRow, err := s.readAnswer(answer)
	if err != nil {
		return nil, err
	}
	receipts := make([]Receipt, len(s.of))
	used := make([]bool, len(s.rows))
	for i, at := range s.of {
		receipts[i] = byRow[at]
		receipts[i].Created = byRow[at].Created && !used[at]
		used[at] = true
	}
	return receipts, nil
}

func (s *Stmt) readAnswer(answer string) ([]Receipt, error) {
	receipts := make([]Receipt, len(s.rows))
	if !s.dedupe {
		if answer != strconv.Itoa(len(s.rows)) {
			return nil, fmt.Errorf("outbox: wrote %d events and the database counted %.20q: is a trigger or rule on "+
				"outbox_events in the way?", len(s.rows), answer)
		}
		for i := range s.rows {
			receipts[i] = Receipt{ID: s.rows[i].id, Created: true}
		}
		return receipts, nil
	}
	verdicts := strings.Split(answer, ",")
	if len(verdicts) != len(s.rows) {
		return nil, fmt.Errorf("outbox: wrote %d events and the database answered for %d: is the schema's version the "+
			"library's?", len(s.rows), len(verdicts))
	}
	var problems []error
	for i, verdict := range verdicts {
		id, err := ParseID(strings.TrimLeft(verdict, "+=!"))
		if err != nil {
			return nil, fmt.Errorf("outbox: the database's answer for event %d has no id: is the schema's version the "+
				"library's?", i)
		}
		if verdict[0] == '!' {
			problems = append(problems, &DedupeMismatchError{
				Index: s.rows[i].index, EventType: s.rows[i].contract.Type, FirstID: id,
			})
		}
		receipts[i] = Receipt{ID: id, Created: verdict[0] == '+'}
	}
	return receipts, errors.Join(problems...)
}
