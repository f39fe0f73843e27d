package console_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
)

// TestDatabaseScreen: how large the tables are, who holds old versions of rows, who writes, retention, rights and
// look-ups; and what needs somebody is said first.
func TestDatabaseScreen(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.emit(event{aggregate: "1"})
		role := "console_" + e.schema
		body := e.shows(viewer, "database", "Nothing here needs you.", "outbox_events", "In place (HOT)", "never ran",
			role, "operator", "reader", "outboxctl migrate lookups add type --schema "+e.schema, "GRANT pg_read_all_stats",
			e.one("SHOW server_version"))
		e.hides(body, "data-copy")

		holder, err := e.admin.BeginTx(t.Context(), pgx.TxOptions{IsoLevel: pgx.RepeatableRead})
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = holder.Rollback(context.WithoutCancel(t.Context())) }()
		for _, statement := range []string{
			"SET LOCAL application_name = 'report <b>'", e.sql("SELECT nextval('{schema}.outbox_events_seq_seq')"),
		} {
			if _, err := holder.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		e.exec(`REVOKE SELECT ON {schema}.outbox_retention FROM ` + role)
		e.exec(`GRANT SELECT ON {schema}.outbox_retention TO ` + role)
		e.exec(`GRANT DELETE ON {schema}.outbox_dlq TO ` + role)
		e.exec(`UPDATE {schema}.outbox_retention SET halted_at = now(), halt_reason = 'too <i>much</i>' WHERE kind = 'dead'`)
		e.exec(`INSERT INTO {schema}.outbox_retention (kind, halted_at, halt_reason)
			SELECT 'dead', now(), 'too <i>much</i>'
			WHERE NOT EXISTS (SELECT FROM {schema}.outbox_retention WHERE kind = 'dead')`)
		body = e.shows(viewer, "database", "Retention of dead rows deletes nothing: too <i>much</i>", "halted",
			"1 role has rights too few or too many.", "DELETE on outbox_dlq", "REVOKE DELETE ON", "data-copy", "report <b>")
		e.hides(body, "<i>", "<b>")
		// Of those who hold old versions of rows the oldest 20 of the whole database are listed: it may be none of them.
		_, writers, _ := strings.Cut(body, `aria-label="Transactions that write events"`)
		if pid := fmt.Sprintf("pid %d<", holder.Conn().PgConn().PID()); !strings.Contains(writers, pid) {
			t.Errorf("%s is no writer: %s", pid, body)
		}
		e.isForbidden("database", tenants)

		// A grant that is missing is named.
		e.exec("REVOKE SELECT ON {schema}.outbox_retention FROM " + role)
		e.console.Forget()
		got := e.as(viewer, path("database"), nil)
		if got.status != http.StatusForbidden || !strings.Contains(got.body, "lacks a right") {
			t.Errorf("without a grant: status %d: %s", got.status, got.body)
		}
	})
}
