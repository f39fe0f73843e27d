package main

import (
	"bytes"
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/serverstest"
	"github.com/posthaste-dev/posthaste/relay/relaytest"
)

// patience is how long a test waits for what takes a moment, also on a busy machine: only what hangs takes as long.
const patience = 3 * time.Minute

// within is the test's context with that limit.
func within(t *testing.T) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	return ctx
}

// An env is an outbox of its own on a real server.
type env struct {
	url    string
	other  string // another database
	pool   *pgxpool.Pool
	schema string
}

func onEachServer(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	serverstest.OnEach(t, func(t *testing.T, address string) {
		e := &env{url: address}
		e.pool, e.schema = relaytest.Database(t, address)
		test(t, e)
	})
}

// call runs a command line on the outbox.
func (e *env) call(t *testing.T, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	return e.callWith(t, "", args...)
}

// callWith is the same, with standard input.
func (e *env) callWith(t *testing.T, input string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, said bytes.Buffer
	environment := map[string]string{"DATABASE_URL": e.url}
	code = executeWith(within(t), append(args, "--schema", e.schema), strings.NewReader(input), &out, &said,
		func(name string) string { return environment[name] })
	return code, out.String(), said.String()
}

// as is the same outbox for a new role without any rights.
func (e *env) as(t *testing.T, role string) *env {
	t.Helper()
	role += "_" + e.schema
	e.exec(t, "CREATE ROLE "+role+" LOGIN")
	t.Cleanup(func() { // before the schema and the pool go
		for _, statement := range []string{"DROP OWNED BY ", "DROP ROLE "} {
			if _, err := e.pool.Exec(context.Background(), statement+role); err != nil {
				t.Error(err)
			}
		}
	})
	address, err := url.Parse(e.url)
	if err != nil {
		t.Fatal(err)
	}
	address.User = url.User(role)
	return &env{url: address.String(), pool: e.pool, schema: e.schema}
}

// role is whose connections these are.
func (e *env) role(t *testing.T) string {
	t.Helper()
	address, err := url.Parse(e.url)
	if err != nil {
		t.Fatal(err)
	}
	return address.User.Username()
}

func (e *env) sql(statement string) string {
	return strings.ReplaceAll(statement, "{schema}", pgx.Identifier{e.schema}.Sanitize())
}

func (e *env) exec(t *testing.T, statement string, args ...any) {
	t.Helper()
	if _, err := e.pool.Exec(t.Context(), e.sql(statement), args...); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// text is the answer of a query for one text.
func (e *env) text(t *testing.T, query string, args ...any) (answer string) {
	t.Helper()
	if err := e.pool.QueryRow(t.Context(), e.sql(query), args...).Scan(&answer); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return answer
}
