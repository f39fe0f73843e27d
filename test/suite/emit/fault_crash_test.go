package emit

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

	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

const (
	victimURL    = "POSTHASTE_EMIT_VICTIM_URL"
	victimSchema = "POSTHASTE_EMIT_VICTIM_SCHEMA"
	// victimLock is held by the victim's session, so that whoever gets it knows that PostgreSQL has
	// noticed the crash.
	victimLock = "SELECT pg_advisory_lock(hashtextextended($1, 1))"
)

// victim is the application that dies: it writes a business row and an event, says so, and kills itself
// before COMMIT.
func victim(url, schema string) int {
	if err := crashBeforeCommit(context.Background(), url, schema); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
	return 1
}

func crashBeforeCommit(ctx context.Context, url, schema string) error {
	conn, err := pgx.Connect(ctx, url)
	if err != nil {
		return err
	}
	if _, err := conn.Exec(ctx, victimLock, schema); err != nil {
		return err
	}
	tx, err := conn.Begin(ctx)
	if err != nil {
		return err
	}
	if _, err := tx.Exec(ctx, `INSERT INTO "`+schema+`".orders (id) VALUES ('1')`); err != nil {
		return err
	}
	receipts, err := corpus.Emit(ctx, tx, schema, []corpus.Given{
		corpus.OrderCreated(`{}`).WithKey("k"), corpus.OrderCreated(`{}`),
	})
	if err != nil {
		return err
	}
	fmt.Println("emitted", len(receipts)) //nolint:forbidigo // for the parent
	return syscall.Kill(os.Getpid(), syscall.SIGKILL)
}

func TestFaultA1CrashBeforeCommit(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
		defer cancel()
		command := exec.CommandContext(ctx, os.Args[0], "-test.run=^$")
		command.Env = append(os.Environ(), victimURL+"="+p.URL, victimSchema+"="+p.Schema)
		var said, problems bytes.Buffer
		command.Stdout, command.Stderr = &said, &problems
		err := command.Run()
		var exit *exec.ExitError
		if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGKILL || ctx.Err() != nil {
			t.Fatalf("the victim did not kill itself: %v, %v\n%s", err, ctx.Err(), problems.String())
		}
		if strings.TrimSpace(said.String()) != "emitted 2" {
			t.Fatalf("the victim died too early: %q", said.String())
		}
		tx := p.begin(t)
		if _, err := tx.Exec(ctx, "SELECT pg_advisory_xact_lock(hashtextextended($1, 1))", p.Schema); err != nil {
			t.Fatal(err)
		}
		p.wantRows(t, 0, 0, 0)

		// The next try finds nothing in its way.
		if receipts := p.mustEmit(t, tx, corpus.OrderCreated(`{}`).WithKey("k")); !receipts[0].Created {
			t.Error("the crashed transaction left its dedupe key behind")
		}
		mustCommit(t, tx)
		p.wantRows(t, 0, 1, 1)
	})
}
