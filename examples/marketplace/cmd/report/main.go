// Command report waits until everything that the shop has emitted came through to its consumers, and shows what they
// made of it. It fails when something is missing, double or wrong.
package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/examples/marketplace/process"
	"github.com/posthaste-dev/posthaste/examples/marketplace/report"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
)

// patience is how long nothing may move, also where events wait for the lease of a publisher that was killed.
const patience = time.Minute

func main() { process.Main("report", run) }

func run(ctx context.Context, _ *slog.Logger) error {
	values, err := settings.Load(os.Args[1:], os.Environ())
	if err != nil {
		return err
	}
	shop, err := pgxpool.New(ctx, settings.DatabaseURL.Get(values).Reveal())
	if err != nil {
		return fmt.Errorf("database.url: %w", err)
	}
	defer shop.Close()
	worker, err := pgxpool.New(ctx, settings.WorkerDatabase(values))
	if err != nil {
		return fmt.Errorf("worker.database_url: %w", err)
	}
	defer worker.Close()

	found, err := drained(ctx, shop, worker)
	if err != nil {
		return err
	}
	if err := showNotices(ctx, worker); err != nil {
		return err
	}
	if err := found.Print(os.Stdout); err != nil {
		return err
	}
	if !found.OK() {
		return errors.New("something is missing, double or wrong")
	}
	return nil
}

const latestNotices = `SELECT format('to %s: the licence %s is %s%s', CASE audience WHEN 'admin' THEN 'the admins' 
	ELSE 'the store ' || store_id END,
	license_id, status, ': ' || reason) FROM notifications ORDER BY id DESC LIMIT 4`

// showNotices shows the latest notices, newest first.
func showNotices(ctx context.Context, worker *pgxpool.Pool) error {
	rows, err := worker.Query(ctx, latestNotices)
	if err != nil {
		return fmt.Errorf("read the notices: %w", err)
	}
	notices, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return fmt.Errorf("read the notices: %w", err)
	}
	for _, notice := range notices {
		fmt.Println("  " + notice)
	}
	return nil
}

// drained looks until everything came through, or patience is at an end: a slow machine takes long, and moves.
func drained(ctx context.Context, shop, worker *pgxpool.Pool) (found report.Report, err error) {
	end, least := time.Now().Add(patience), -1
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		if found, err = report.Look(ctx, shop, worker); err != nil || found.Drained() {
			return found, err
		}
		if left := found.Left(); least < 0 || left < least {
			end, least = time.Now().Add(patience), left
		}
		if time.Now().After(end) {
			return found, nil
		}
		select {
		case <-again.C:
		case <-ctx.Done():
			return found, ctx.Err()
		}
	}
}
