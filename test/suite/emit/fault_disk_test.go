//go:build linux

package emit

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/test/kit/corpus"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

const diskSize = 8 << 20

// smallDisk mounts a file system of a few megabytes and moves the test's tables there, and nothing else:
// the server's own directory is never at risk. Where that cannot be done it says why and skips.
func (p env) smallDisk(t *testing.T) (folder string) {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("a file system that fills up needs root to be mounted")
	}
	var data string
	if err := p.pool.QueryRow(t.Context(), "SHOW data_directory").Scan(&data); err != nil {
		t.Fatal(err)
	}
	owner, err := os.Stat(data)
	if err != nil {
		t.Skipf("the server's files are not on this machine: %v", err)
	}
	// Not below a test's private folder: the server runs as another user, who may not enter it.
	folder, err = os.MkdirTemp(filepath.Dir(filepath.Dir(data)), "disk-") //nolint:usetesting // as above
	if err != nil {
		t.Skipf("no folder beside the server's: %v", err)
	}
	t.Cleanup(func() { _ = os.Remove(folder) })
	if err := syscall.Mount("tmpfs", folder, "tmpfs", 0, fmt.Sprintf("size=%d,mode=0755", diskSize)); err != nil {
		t.Skipf("no file system can be mounted here: %v", err)
	}
	t.Cleanup(func() {
		// Backends may have deleted files open still; the file system goes when they close them.
		if err := syscall.Unmount(folder, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	stat := owner.Sys().(*syscall.Stat_t)
	if err := os.Chown(folder, int(stat.Uid), int(stat.Gid)); err != nil {
		t.Fatal(err)
	}
	p.moveTo(t, folder)
	return folder
}

func (p env) moveTo(t *testing.T, folder string) {
	t.Helper()
	space := pgtest.NewName("small")
	if _, err := p.pool.Exec(t.Context(), "CREATE TABLESPACE "+space+" LOCATION '"+folder+"'"); err != nil {
		t.Skipf("the server does not see the new file system: %v", err)
	}
	t.Cleanup(func() {
		for _, statement := range []string{`DROP SCHEMA "` + p.Schema + `" CASCADE`, "DROP TABLESPACE " + space} {
			if _, err := p.pool.Exec(context.Background(), statement); err != nil {
				t.Errorf("%s: %v", statement, err)
			}
		}
	})
	for _, table := range []string{"orders", "outbox_events", "outbox_dedupe"} {
		p.Exec(t, "ALTER TABLE {schema}."+table+" SET TABLESPACE "+space)
	}
}

// fill takes what is left of the disk.
func fill(t *testing.T, folder string) (free func()) {
	t.Helper()
	name := filepath.Join(folder, "filler")
	file, err := os.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	if _, err := io.Copy(file, zeros{}); !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk does not fill up: %v", err)
	}
	return func() {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { return len(p), nil }

// emitUntilFull runs business transactions until one fails, and returns how many committed.
func (p env) emitUntilFull(t *testing.T, prefix string) (committed int, err error) {
	t.Helper()
	for committed = range diskSize / 8192 {
		order := fmt.Sprintf("%s-%d", prefix, committed)
		event := corpus.OrderCreated(`{"pad":"` + strings.Repeat("x", 1500) + `"}`).WithKey(order)
		event.AggregateID = order
		err := pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error {
			if err := p.order(t.Context(), tx, order); err != nil {
				return err
			}
			_, err := corpus.Emit(t.Context(), tx, p.Schema, []corpus.Given{event})
			return err
		})
		if err != nil {
			return committed, err
		}
	}
	return committed, nil
}

func TestFaultA20DiskFull(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, p env) {
		folder := p.smallDisk(t)
		if _, err := p.pool.Exec(t.Context(), p.SQL("INSERT INTO {schema}.orders (id) VALUES ('before')")); err != nil {
			t.Fatal(err)
		}
		free := fill(t, folder)
		before, err := p.emitUntilFull(t, "full")
		if sqlState(err) != "53100" || outbox.Retryable(err) || errors.Is(err, outbox.ErrRefused) {
			t.Fatalf("want disk_full (53100), got %v after %d", err, before)
		}
		p.wantRows(t, 1+before, before, before) // nothing of the one that failed
		free()
		if err := pgx.BeginFunc(t.Context(), p.pool, func(tx pgx.Tx) error {
			p.mustOrder(t, tx, "after")
			p.mustEmit(t, tx, corpus.OrderCreated(`{}`).WithKey(fmt.Sprintf("full-%d", before))) // the key that failed is free
			return nil
		}); err != nil {
			t.Fatalf("with space again: %v", err)
		}
		p.wantRows(t, 2+before, before+1, before+1)
	})
}
