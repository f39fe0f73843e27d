package outbox

import (
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"
)

//go:embed sql/*.sql
var statements embed.FS

// DefaultSchema is where the tables are unless told otherwise.
const DefaultSchema = "public"

// A Stmt is one statement that writes events, for drivers and batches that [Emit] does not know. Run
// it in the transaction of the business change; it answers one row of one text, which Receipts reads.
//
// Every argument is a string or nil, so that no driver has to know a PostgreSQL type.
type Stmt struct {
	SQL  string
	Args []any

	rows   []row
	of     []int // the row that stands for each event: two events may share a dedupe key
	dedupe bool
}

// A Receipt says what became of an emitted event.
type Receipt struct {
	// ID is the event's id; the first event's where Created is false.
	ID ID
	// Created is false when the dedupe key was used before, with the same content.
	Created bool
}

// row is an event in the form in which it is stored.
type row struct {
	index       int
	id          ID
	contract    *Contract
	event       *Event
	payload     []byte
	headers     any // JSON text or nil
	contentHash [sha256.Size]byte
}

// Statement checks the events and returns the one statement that writes all of them into the tables
// of this schema. What it refuses is an [ErrRefused], with every problem of every event.
func Statement(schema string, events ...Event) (*Stmt, error) {
	if schema == "" {
		schema = DefaultSchema
	}
	rows, err := prepare(events)
	if err != nil {
		return nil, err
	}
	stmt, err := merge(rows)
	if err != nil {
		return nil, err
	}
	stmt.SQL = statementText(schema, stmt.fileName())
	switch {
	case len(stmt.rows) == 1 && !stmt.dedupe:
		stmt.Args = stmt.rows[0].values()
	default:
		stmt.Args = stmt.columns()
	}
	return stmt, nil
}

func (s *Stmt) fileName() string {
	name := "many"
	if len(s.rows) == 1 {
		name = "one"
	}
	if s.dedupe {
		name += "_deduped"
	}
	return name
}

// statementText reads a statement and names the schema in it.
func statementText(schema, name string) string {
	text, _ := statements.ReadFile("sql/" + name + ".sql") // embedded
	return strings.ReplaceAll(string(text), "{schema}", quoteIdent(schema))
}

func quoteIdent(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

// prepare checks all events and brings them into the form in which they are stored.
func prepare(events []Event) ([]row, error) {
	if len(events) == 0 {
		return nil, &FieldError{Field: "events", Problem: "none given"}
	}
	if len(events) > MaxEventsPerEmit {
		return nil, &FieldError{Field: "events", Problem: fmt.Sprintf("%d of them, the limit is %d", len(events), MaxEventsPerEmit)}
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
				found = [][2]string{{"data", fmt.Sprintf("the stored payload would be %d bytes, the limit is %d", len(made.payload), event.contract.MaxBytes)}}
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
		problems = append(problems, &FieldError{Field: "events", Problem: fmt.Sprintf("%d bytes together, the limit is %d", size, MaxBytesPerEmit)})
	}
	return rows, errors.Join(problems...)
}

// row brings a checked event into the form in which it is stored.
func (e *Event) row(index int) row {
	made := row{index: index, id: e.ID, contract: &e.contract, event: e}
	if made.id == (ID{}) {
		made.id = NewID()
	}
	envelope := Envelope{Version: e.contract.Version, EventID: made.id, OccurredAt: e.OccurredAt, Actor: e.Actor, Data: e.data}
	if envelope.OccurredAt.IsZero() {
		envelope.OccurredAt = time.Now()
	}
	made.payload = envelope.appendTo(make([]byte, 0, len(e.data)+160))
	if len(e.Headers) > 0 {
		headers, _ := json.Marshal(e.Headers) // strings, known to be valid UTF-8
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
// cannot meet one key twice in one statement.
func merge(rows []row) (*Stmt, error) {
	stmt := &Stmt{of: make([]int, len(rows))}
	type key struct{ namespace, eventType, tenant, dedupe string }
	seen := map[key]int{}
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
		stmt.of[i] = at
		stmt.rows = append(stmt.rows, r)
	}
	return stmt, errors.Join(problems...)
}

// values are the arguments of the statement for one event without a dedupe key.
func (r *row) values() []any {
	return []any{
		r.id.String(), r.contract.Namespace, r.contract.Type, r.contract.Aggregate, r.event.AggregateID,
		orNil(r.event.TenantID), string(r.payload), r.headers,
	}
}

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// columns are the arguments of the other statements: an array literal a column.
func (s *Stmt) columns() []any {
	columns := []func(r *row) any{
		func(r *row) any { return r.id.String() },
		func(r *row) any { return r.contract.Namespace },
		func(r *row) any { return r.contract.Type },
		func(r *row) any { return r.contract.Aggregate },
		func(r *row) any { return r.event.AggregateID },
		func(r *row) any { return orNil(r.event.TenantID) },
	}
	if s.dedupe {
		columns = append(columns,
			func(r *row) any { return orNil(r.event.DedupeKey) },
			func(r *row) any { return `\x` + hex.EncodeToString(r.contentHash[:]) },
			func(r *row) any { return strconv.FormatBool(r.contract.FirstWins) },
		)
	}
	columns = append(columns,
		func(r *row) any { return string(r.payload) },
		func(r *row) any { return r.headers },
	)
	args := make([]any, len(columns))
	for i, column := range columns {
		args[i] = arrayLiteral(s.rows, column)
	}
	return args
}

var escapeElement = strings.NewReplacer(`\`, `\\`, `"`, `\"`)

// arrayLiteral writes a column as a PostgreSQL array in text form, which every driver can send.
func arrayLiteral(rows []row, column func(*row) any) string {
	var literal strings.Builder
	literal.WriteByte('{')
	for i := range rows {
		if i > 0 {
			literal.WriteByte(',')
		}
		text, ok := column(&rows[i]).(string)
		if !ok {
			literal.WriteString("NULL")
			continue
		}
		literal.WriteByte('"')
		_, _ = escapeElement.WriteString(&literal, text) // a Builder does not fail
		literal.WriteByte('"')
	}
	literal.WriteByte('}')
	return literal.String()
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
			return nil, fmt.Errorf("outbox: wrote %d events and the database counted %.20q: is a trigger or rule on outbox_events in the way?", len(s.rows), answer)
		}
		for i := range s.rows {
			receipts[i] = Receipt{ID: s.rows[i].id, Created: true}
		}
		return receipts, nil
	}
	verdicts := strings.Split(answer, ",")
	if len(verdicts) != len(s.rows) {
		return nil, fmt.Errorf("outbox: wrote %d events and the database answered for %d: is the schema's version the library's?", len(s.rows), len(verdicts))
	}
	var problems []error
	for i, verdict := range verdicts {
		id, err := ParseID(strings.TrimLeft(verdict, "+=!"))
		if err != nil {
			return nil, fmt.Errorf("outbox: the database's answer for event %d has no id: is the schema's version the library's?", i)
		}
		if verdict[0] == '!' {
			problems = append(problems, &DedupeMismatchError{Index: s.rows[i].index, EventType: s.rows[i].contract.Type, FirstID: id})
		}
		receipts[i] = Receipt{ID: id, Created: verdict[0] == '+'}
	}
	return receipts, errors.Join(problems...)
}
