package outbox

import (
	"embed"
	"encoding/hex"
	"strconv"
	"strings"
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
	if len(stmt.rows) == 1 {
		stmt.Args = stmt.values()
	} else {
		stmt.Args = stmt.literals()
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

func orNil(text string) any {
	if text == "" {
		return nil
	}
	return text
}

// columns say what a row has for each parameter of the statements, as text or nil.
func (s *Stmt) columns() []func(r *row) any {
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
	return append(columns,
		func(r *row) any { return string(r.payload) },
		func(r *row) any { return r.headers },
	)
}

// values are the arguments of the statements for one event.
func (s *Stmt) values() []any {
	columns := s.columns()
	args := make([]any, len(columns))
	for i, column := range columns {
		args[i] = column(&s.rows[0])
	}
	return args
}

// literals are the arguments of the statements for many: an array a column.
func (s *Stmt) literals() []any {
	columns := s.columns()
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
