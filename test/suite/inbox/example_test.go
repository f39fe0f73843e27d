package inbox_test

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
)

// The handler of docs/guide/inbox.md, with pgx.
func Example() {
	handle := func(ctx context.Context, pool *pgxpool.Pool, eventID outbox.ID, orderID string) error {
		err := outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
			first, err := inbox.First(ctx, tx, "mailer", eventID)
			if err != nil || !first {
				return err // not first: it was handled before
			}
			_, err = tx.Exec(ctx, "INSERT INTO notices (order_id) VALUES ($1)", orderID)
			return err
		})
		// nil: acknowledge, also when it was not the first. An error: do not; let it come again.
		return err
	}
	_ = handle
}

// TestTheDocumentShowsWhatCompiles: its first code is in this file.
func TestTheDocumentShowsWhatCompiles(t *testing.T) {
	t.Parallel()
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	_, rest, _ := strings.Cut(read("../../../docs/guide/inbox.md"), "```go\n")
	code, _, found := strings.Cut(rest, "```")
	if !found || len(code) < 100 || !strings.Contains(flat(read("example_test.go")), flat(code)) {
		t.Error("the first code of docs/guide/inbox.md is not in example_test.go")
	}
}
