package bench

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
)

// ProcessCPU is the CPU time that this process has used so far.
func ProcessCPU() time.Duration {
	var usage syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &usage); err != nil {
		return 0
	}
	return time.Duration(usage.Utime.Nano() + usage.Stime.Nano())
}

// CPUOf is the CPU time that these processes have used so far. They must be on this machine.
func CPUOf(pids []int) (time.Duration, error) {
	var total time.Duration
	for _, pid := range pids {
		used, err := cpuOf(pid)
		if err != nil {
			return 0, err
		}
		total += used
	}
	return total, nil
}

// cpuOf adds up the threads. It reads schedstat and not stat: nanoseconds instead of hundredths of a
// second.
func cpuOf(pid int) (time.Duration, error) {
	threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/schedstat", pid))
	if err != nil || len(threads) == 0 {
		return 0, fmt.Errorf("bench: process %d is not on this machine, or cannot be looked at", pid)
	}
	var total time.Duration
	for _, thread := range threads {
		text, err := os.ReadFile(thread)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // it ended since
		}
		onCPU, _, _ := strings.Cut(string(text), " ")
		nanos, parseErr := strconv.ParseInt(onCPU, 10, 64)
		if err := errors.Join(err, parseErr); err != nil {
			return 0, fmt.Errorf("bench: cpu of process %d: %w", pid, err)
		}
		total += time.Duration(nanos)
	}
	return total, nil
}

// Backends are the server's processes for connections of one application_name. The WAL writer and the
// checkpointer work for everybody and are not among them.
func (db *Database) Backends(ctx context.Context, application string) ([]int, error) {
	rows, err := db.Control.Query(ctx, "SELECT pid FROM pg_stat_activity WHERE datname = $1 AND application_name = $2",
		db.Name, application)
	if err != nil {
		return nil, fmt.Errorf("bench: backends: %w", err)
	}
	return pgx.CollectRows(rows, pgx.RowTo[int])
}

// SeesBackends tells whether the server's processes are on this machine and can be looked at.
func (db *Database) SeesBackends(ctx context.Context) bool {
	var pid int
	if err := db.Control.QueryRow(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
		return false
	}
	name, err := os.ReadFile(fmt.Sprintf("/proc/%d/comm", pid))
	if err != nil || !strings.HasPrefix(string(name), "postgres") {
		return false
	}
	_, err = cpuOf(pid)
	return err == nil
}
