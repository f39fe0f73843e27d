package process

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"sync"
	"syscall"
)

var (
	builds  sync.Mutex
	already = map[string]string{}
)

// Built is the program of a command of this repository, named by its folder, such as "cmd/outboxctl". All tests share
// it: linking one takes longer than most of what they do with it. It is in bin/tests, where the go command leaves alone
// what is up to date; of the processes that want it at the same time one builds, and the others wait.
func Built(ctx context.Context, command string) (executable string, err error) {
	builds.Lock()
	defer builds.Unlock()
	if executable, done := already[command]; done {
		return executable, nil
	}
	root, err := repository()
	if err != nil {
		return "", err
	}
	folder := filepath.Join(root, "bin", "tests")
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return "", fmt.Errorf("process: %w", err)
	}
	// One name alone would be two programs: the marketplace has a publisher, too.
	executable = filepath.Join(folder, filepath.FromSlash(path.Dir(command)), path.Base(command))
	lock, err := os.OpenFile(filepath.Join(folder, ".lock"), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", fmt.Errorf("process: %w", err)
	}
	defer func() { _ = lock.Close() }() // and the lock is free
	if err := syscall.Flock(int(lock.Fd()), syscall.LOCK_EX); err != nil {
		return "", fmt.Errorf("process: wait for another build: %w", err)
	}
	build := exec.CommandContext(ctx, "go", "build", "-o", executable,
		"github.com/posthaste-dev/posthaste/"+command)
	build.Dir = root
	if text, err := build.CombinedOutput(); err != nil {
		return "", fmt.Errorf("process: build %s: %w\n%s", command, err, text)
	}
	already[command] = executable
	return executable, nil
}

// repository is its folder: a test runs in that of its package.
func repository() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("process: %w", err)
	}
	for {
		if _, err := os.Stat(filepath.Join(folder, "go.work")); err == nil {
			return folder, nil
		}
		above := filepath.Dir(folder)
		if above == folder {
			return "", fmt.Errorf("process: no folder above this one has a go.work")
		}
		folder = above
	}
}
