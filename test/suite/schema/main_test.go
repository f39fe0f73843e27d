package schema

import (
	"context"
	"database/sql"
	"fmt"
	"net/url"
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/schema"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// figure reports a number to the proof.
func figure(t testing.TB, name string, n int) {
	t.Helper()
	t.Attr(name, strconv.Itoa(n))
	t.Logf("%s=%d", name, n)
}

// onEach runs a test against every server, without a schema.
func onEach(t *testing.T, test func(t *testing.T, server pgtest.Server)) {
	t.Helper()
	for _, server := range pgtest.Servers() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			test(t, server)
		})
	}
}

// emptySchema promises that no schema of this name is there, before and after.
func emptySchema(t testing.TB, server pgtest.Server, prefix string) string {
	t.Helper()
	name := pgtest.NewName(prefix)
	std := pgtest.OpenSQL(t, "pgx", server.URL)
	t.Cleanup(func() { mustExec(t, std, "DROP SCHEMA IF EXISTS "+quote(name)+" CASCADE") })
	return name
}

// migrateUp installs everything into the schema.
func migrateUp(t testing.TB, server pgtest.Server, options schema.Options) {
	t.Helper()
	if err := schema.Outbox.Up(t.Context(), pgtest.OpenSQL(t, "pgx", server.URL), options); err != nil {
		t.Fatal(err)
	}
}

func migrateDown(t testing.TB, server pgtest.Server, options schema.Options) {
	t.Helper()
	if err := schema.Outbox.Down(t.Context(), pgtest.OpenSQL(t, "pgx", server.URL), options); err != nil {
		t.Fatal(err)
	}
}

func applied(t testing.TB, server pgtest.Server, name string) []int64 {
	t.Helper()
	versions, err := schema.Outbox.Applied(t.Context(), pgtest.OpenSQL(t, "pgx", server.URL), name)
	if err != nil {
		t.Fatal(err)
	}
	return versions
}

func newest(t testing.TB) int64 {
	t.Helper()
	migrations, err := schema.Outbox.Migrations()
	if err != nil {
		t.Fatal(err)
	}
	return migrations[len(migrations)-1].Version
}

func quote(name string) string { return `"` + strings.ReplaceAll(name, `"`, `""`) + `"` }

func mustExec(t testing.TB, db *sql.DB, statement string) {
	t.Helper()
	if _, err := db.ExecContext(context.WithoutCancel(t.Context()), statement); err != nil {
		t.Fatalf("%s: %v", statement, err)
	}
}

// withParameter adds a parameter to a server's URL.
func withParameter(t testing.TB, address, name, value string) string {
	t.Helper()
	parsed, err := url.Parse(address)
	if err != nil {
		t.Fatal(err)
	}
	query := parsed.Query()
	query.Set(name, value)
	parsed.RawQuery = strings.ReplaceAll(query.Encode(), "+", "%20") // pgx takes a plus for a plus
	return parsed.String()
}

// envelope is an acceptable payload of the event with this id, with a filler of some bytes.
func envelope(id string, filler int) string {
	return fmt.Sprintf(`{"version":1,"eventId":%q,"occurredAt":"2026-01-01T00:00:00.000000Z","data":{"x":%q}}`, id,
		strings.Repeat("x", filler))
}

// insertEvent writes an event by hand and returns its id. The state is 0 for a new one; others it is moved to.
func insertEvent(t testing.TB, db *pgtest.DB, aggregate string, state int) string {
	t.Helper()
	var id string
	if err := db.Pool.QueryRow(t.Context(), db.SQL("SELECT {schema}.outbox_uuid7()::text")).Scan(&id); err != nil {
		t.Fatal(err)
	}
	db.Exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
		VALUES ($1, 'order_created', 'order', $2, $3)`, id, aggregate, envelope(id, 10))
	if state != 0 {
		db.Exec(t, states.Move, id, state)
	}
	return id
}

// column reads one column of text.
func column(t testing.TB, pool *pgxpool.Pool, query string, args ...any) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), query, args...)
	if err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	defer rows.Close()
	var lines []string
	for rows.Next() {
		var line string
		if err := rows.Scan(&line); err != nil {
			t.Fatalf("%s: %v", query, err)
		}
		lines = append(lines, line)
	}
	if err := rows.Err(); err != nil {
		t.Fatalf("%s: %v", query, err)
	}
	return lines
}
