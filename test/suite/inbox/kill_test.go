package inbox_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

const (
	victimURL    = "POSTHASTE_INBOX_VICTIM_URL"
	victimSchema = "POSTHASTE_INBOX_VICTIM_SCHEMA"
	victimEvent  = "POSTHASTE_INBOX_VICTIM_EVENT"
	victimPoint  = "POSTHASTE_INBOX_VICTIM_POINT"
)

// The points at which a consumer dies, and whether its effect has happened by then.
var points = []struct {
	name      string
	committed bool
}{
	{"after begin", false},
	{"after check", false},
	{"after effect", false},
	{"after commit", true}, // and before the acknowledgement
}

// victim is a consumer that handles one event and kills itself at a point.
func victim(url, schema, event, point string) int {
	if err := handleAndDie(context.Background(), url, schema, event, point); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func handleAndDie(ctx context.Context, url, schema, event, point string) error {
	die := func(at string) {
		if at == point {
			fmt.Println(at)                                //nolint:forbidigo // for the parent
			_ = syscall.Kill(os.Getpid(), syscall.SIGKILL) // nothing runs after it
			select {}
		}
	}
	id, err := outbox.ParseID(event)
	if err != nil {
		return err
	}
	pool, err := pgxpool.New(ctx, url)
	if err != nil {
		return err
	}
	defer pool.Close()
	db := &pgtest.DB{Schema: schema}
	err = outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
		die("after begin")
		first, err := inbox.First(ctx, outbox.InSchema(tx, schema), consumer, id)
		if err != nil || !first {
			return fmt.Errorf("first is %t: %w", first, err)
		}
		die("after check")
		if err := effect(ctx, db, tx, delivery{event: id}); err != nil {
			return err
		}
		die("after effect")
		return nil
	})
	if err != nil {
		return err
	}
	die("after commit")
	return nil
}

// TestFaultI2KilledAnywhere: a consumer that dies before its commit leaves nothing, so the event is handled when it
// comes again; one that dies after it has handled the event, and the copy is skipped (I12).
func TestFaultI2KilledAnywhere(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, db *pgtest.DB) {
		for _, point := range points {
			event := outbox.NewID()
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
			defer cancel()
			command := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
			command.Env = append(os.Environ(), victimURL+"="+db.URL, victimSchema+"="+db.Schema, victimEvent+"="+event.String(),
				victimPoint+"="+point.name)
			var said, problems bytes.Buffer
			command.Stdout, command.Stderr = &said, &problems
			var exit *exec.ExitError
			if err := command.Run(); !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL ||
				ctx.Err() != nil {
				t.Fatalf("%s: the consumer did not kill itself: %v, %v\n%s", point.name, err, ctx.Err(), problems.String())
			}
			if strings.TrimSpace(said.String()) != point.name {
				t.Fatalf("%s: the consumer died elsewhere: %q", point.name, said.String())
			}
			effects := func() int {
				return db.Count(t, "SELECT count(*) FROM {schema}.effects WHERE event_id = $1::text::uuid", event.String())
			}
			if point.committed && effects() != 1 {
				t.Errorf("%s: %d effects before the copy, want 1", point.name, effects())
			}
			// The copy waits for the server to notice the death, if it has not yet.
			if err := handleOnce(t.Context(), db, delivery{event: event}); err != nil {
				t.Errorf("%s: the copy: %v", point.name, err)
			}
			if n := effects(); n != 1 {
				t.Errorf("%s: %d effects, want 1", point.name, n)
			}
		}
	})
}
