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
		stmt.Args = stmt.joined()
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

// columns say what a row has for each parameter of the statements; "" is null.
func (s *Stmt) columns() []func(r *row) string {
	columns := []func(r *row) string{
		func(r *row) string { return r.id.String() },
		func(r *row) string { return r.contract.Namespace },
		func(r *row) string { return r.contract.Type },
		func(r *row) string { return r.contract.Aggregate },
		func(r *row) string { return r.event.AggregateID },
		func(r *row) string { return r.event.TenantID },
	}
	if s.dedupe {
		columns = append(columns,
			func(r *row) string { return r.event.DedupeKey },
			func(r *row) string { return `\x` + hex.EncodeToString(r.contentHash[:]) },
			func(r *row) string { return strconv.FormatBool(r.contract.FirstWins) },
		)
	}
	return append(columns,
		func(r *row) string { return r.payload },
		func(r *row) string { return r.headers },
	)
}

// values are the arguments of the statements for one event.
func (s *Stmt) values() []any {
	columns := s.columns()
	args := make([]any, len(columns))
	for i, column := range columns {
		if text := column(&s.rows[0]); text != "" {
			args[i] = text
		}
	}
	return args
}

// separator stands between the values of a column. No value holds it: names and identifiers have no control
// characters, and in JSON there is none but white space. So nothing is escaped, and PostgreSQL takes a column apart
// for less than it reads an array for. The statements name it as chr(30).
const separator = "\x1e"

// joined are the arguments of the statements for many events: a column each.
func (s *Stmt) joined() []any {
	columns := s.columns()
	args := make([]any, len(columns))
	texts := make([]string, len(s.rows))
	for i, column := range columns {
		for j := range s.rows {
			texts[j] = column(&s.rows[j])
		}
		args[i] = strings.Join(texts, separator)
	}
	return args
}
