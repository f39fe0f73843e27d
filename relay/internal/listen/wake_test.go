package listen_test

import (
	"context"
	"crypto/rand"
	"database/sql"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	_ "github.com/jackc/pgx/v5/stdlib" // the driver that migrates

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/listen"
	"github.com/posthaste-dev/posthaste/schema"
)

// The doorbell and the ear, with the schema's own function between them.
func TestHearsTheDoorbell(t *testing.T) {
	t.Parallel()
	for name, server := range map[string][2]string{
		"postgres18": {"SERVICES_POSTGRES18_URL", "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable"},
		"postgres15": {"SERVICES_POSTGRES15_URL", "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := server[1]
			if given := os.Getenv(server[0]); given != "" {
				address = given
			}
			db, err := sql.Open("pgx", address)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = db.Close() })
			name := "Listen " + rand.Text()[:12] // a name that needs its quotes
			t.Cleanup(func() {
				if _, err := db.ExecContext(context.Background(), `DROP SCHEMA IF EXISTS "`+name+`" CASCADE`); err != nil {
					t.Error(err)
				}
			})
			if err := schema.Outbox.Up(t.Context(), db, schema.Options{Schema: name}); err != nil {
				t.Fatal(err)
			}
			awaitTheDoorbell(t, db, address, name)
		})
	}
}

func awaitTheDoorbell(t *testing.T, db *sql.DB, address, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	woken := make(chan struct{}, 100)
	var group sync.WaitGroup
	group.Go(func() {
		listen.Listen(ctx, func(ctx context.Context) (*pgx.Conn, error) { return pgx.Connect(ctx, address) }, name, func() {
			woken <- struct{}{}
		})
	})
	defer group.Wait()
	defer cancel()
	ring := outbox.RingSQL(db, name)
	// However long it takes: a ring that was given up on a busy machine would not be heard.
	bell := outbox.NewDoorbell(func(ctx context.Context) error { return ring(context.WithoutCancel(ctx)) })
	defer bell.Close()
	for _, what := range []string{"the connect", "the first ring", "the second ring"} {
		select {
		case <-woken:
		case <-time.After(2 * time.Minute):
			t.Fatalf("%s was not heard; %d rings failed", what, bell.Failures())
		}
		bell.Ring()
	}
}
