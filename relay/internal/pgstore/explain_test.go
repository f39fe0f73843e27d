package pgstore_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"
)

// A planned statement has the index it was made for.
type planned struct {
	name      string
	statement string
	args      []any
	index     string
	condition string // a regular expression that the Index Cond of that index must match
	sorts     bool   // whether the plan may sort
	// perRow and least bound the buffers: least + perRow for every row that is read or changed.
	rows, perRow, least int
}

// plan prepares the statement and explains a run of it, which is rolled back.
func (p planned) plan(t testing.TB, conn *pgx.Conn) (text string, buffers int) {
	t.Helper()
	var args []string
	for _, arg := range p.args {
		kind, ok := conn.TypeMap().TypeForValue(arg)
		if !ok {
			t.Fatalf("%s: %T", p.name, arg)
		}
		encoded := must(conn.TypeMap().Encode(kind.OID, pgtype.TextFormatCode, arg, nil))(t)
		if encoded == nil {
			args = append(args, "NULL")
			continue
		}
		args = append(args, "'"+strings.ReplaceAll(string(encoded), "'", "''")+"'")
	}
	execute := "EXECUTE p"
	if len(args) > 0 {
		execute += " (" + strings.Join(args, ", ") + ")"
	}
	tx := must(conn.Begin(t.Context()))(t)
	defer func() { _ = tx.Rollback(t.Context()) }()
	for _, statement := range []string{"DEALLOCATE ALL", "PREPARE p AS " + p.statement} {
		if _, err := tx.Exec(t.Context(), statement, pgx.QueryExecModeSimpleProtocol); err != nil {
			t.Fatalf("%s: %v", p.name, err)
		}
	}
	rows, err := tx.Query(t.Context(), "EXPLAIN "+execute, pgx.QueryExecModeSimpleProtocol)
	if err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	text = strings.Join(must(pgx.CollectRows(rows, pgx.RowTo[string]))(t), "\n")
	text = strings.ReplaceAll(text, "(lane)::smallint", "lane") // its type is a domain of it
	var answer []byte
	if err := tx.QueryRow(t.Context(), "EXPLAIN (ANALYZE, BUFFERS, FORMAT JSON) "+execute,
		pgx.QueryExecModeSimpleProtocol).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", p.name, err)
	}
	var explained []struct{ Plan node }
	if err := json.Unmarshal(answer, &explained); err != nil {
		t.Fatal(err)
	}
	return text, explained[0].Plan.buffers()
}

// A node of a plan, with the buffers of everything below it.
type node struct {
	Type  string `json:"Node Type"`
	Part  string `json:"Subplan Name"` // "CTE x" at the top of x
	From  string `json:"CTE Name"`     // of a scan of x: "x"
	Hit   int    `json:"Shared Hit Blocks"`
	Read  int    `json:"Shared Read Blocks"`
	Plans []node
}

// buffers are those of a whole statement. Updates and inserts that the answer does not ask for run behind the top node,
// which does not count them.
func (n node) buffers() int {
	asked := map[string]bool{}
	n.each(func(n node) { asked["CTE "+n.From] = true })
	sum := n.Hit + n.Read
	n.changes(func(change node) {
		if !asked[change.Part] {
			sum += change.Hit + change.Read
		}
	})
	return sum
}

// each calls a function for the nodes that are part of no change.
func (n node) each(call func(node)) {
	call(n)
	for _, below := range n.Plans {
		if below.Type != "ModifyTable" {
			below.each(call)
		}
	}
}

// changes calls a function for the changes beside the answer.
func (n node) changes(call func(node)) {
	for _, below := range n.Plans {
		if below.Type == "ModifyTable" {
			call(below)
		} else {
			below.changes(call)
		}
	}
}

func (w *world) connect(t testing.TB, settings string) *pgx.Conn {
	t.Helper()
	pooled := must(w.pool.Acquire(t.Context()))(t)
	conn := pooled.Hijack()
	t.Cleanup(func() { _ = conn.Close(context.Background()) })
	if _, err := conn.Exec(t.Context(), "SET statement_timeout = 0; "+settings); err != nil {
		t.Fatal(err)
	}
	return conn
}
