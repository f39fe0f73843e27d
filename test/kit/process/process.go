// Package process runs programs that tests and proofs ask to stop, freeze and kill.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Command is what to start.
type Command struct {
	Program string
	Args    []string
	// Environment is all that it has; nil: what this process has.
	Environment []string
	// Folder is where it runs; empty: where this process does.
	Folder string
	// Log is the file of what it says.
	Log string
	// Input is held open for as long as this process lives. Without, there is nothing to read.
	Input bool
}

// Process is a program that runs.
type Process struct {
	// Log is the file of what it says.
	Log string
	// Ended is closed when it is gone.
	Ended chan struct{}

	command *exec.Cmd
	err     error
}

// Start starts a program, which does not outlive this one.
func Start(c Command) (*Process, error) {
	log, err := os.Create(c.Log)
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	defer log.Close() // the process has its own
	// Not CommandContext: it is asked to stop, or killed.
	p := &Process{Log: c.Log, Ended: make(chan struct{}), command: exec.Command(c.Program, c.Args...)}
	p.command.Dir, p.command.Env, p.command.Stdout, p.command.Stderr = c.Folder, c.Environment, log, log
	// A group of its own, so that a Ctrl-C is for whoever started it.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if c.Input {
		if _, err := p.command.StdinPipe(); err != nil {
			return nil, fmt.Errorf("process: %w", err)
		}
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("process: start %s: %w", c.Program, err)
	}
	go func() {
		defer close(p.Ended)
		p.err = p.command.Wait()
	}()
	return p, nil
}

// PID is the number of the process.
func (p *Process) PID() int { return p.command.Process.Pid }

// Alive tells whether it has not ended.
func (p *Process) Alive() bool {
	select {
	case <-p.Ended:
		return false
	default:
		return true
	}
}

// Await waits for the end; false: it did not come in time.
func (p *Process) Await(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-p.Ended:
		return true
	case <-ctx.Done():
		return !p.Alive()
	}
}

// Err is how a process has ended; nil: well, or it has not.
func (p *Process) Err() error {
	if p.Alive() {
		return nil
	}
	return p.err
}

// ExitCode is that of a process that has ended; negative: a signal killed it.
func (p *Process) ExitCode() int { return p.command.ProcessState.ExitCode() }

// KilledBy tells whether the process has ended by this signal.
func (p *Process) KilledBy(signal syscall.Signal) bool {
	if p.Alive() {
		return false
	}
	status, is := p.command.ProcessState.Sys().(syscall.WaitStatus)
	return is && status.Signaled() && status.Signal() == signal
}

// Signal sends a signal; to a process that has ended it does nothing.
func (p *Process) Signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("process: %s: %w", signal, err)
	}
	return nil
}

// Kill ends it at once.
func (p *Process) Kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.Ended
}

// Stop asks the process to stop as `kill` does, and waits for so long at most. False: it did not end, and was killed.
func (p *Process) Stop(ctx context.Context, most time.Duration) (bool, error) {
	if err := p.Signal(syscall.SIGTERM); err != nil {
		return false, err
	}
	if p.Await(ctx, most) {
		return true, nil
	}
	p.Kill()
	return false, nil
}

// Freeze lets the process stand still, and returns when it does: until then it may do something still.
func (p *Process) Freeze(ctx context.Context) error {
	if err := p.Signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return eventually.Within(ctx, time.Minute, "the process stands still", func() (bool, error) {
		if !p.Alive() {
			return true, nil
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.PID()))
		for _, thread := range threads {
			text, err := os.ReadFile(thread)
			if err != nil {
				continue // it has ended
			}
			// The state is what follows the name, which may have anything in it.
			if _, state, _ := strings.Cut(string(text), ") "); !strings.HasPrefix(state, "T") {
				return false, nil
			}
		}
		return true, err
	})
}

// Said is all that the process has said so far, or why that cannot be read.
func (p *Process) Said() string {
	text, err := os.ReadFile(p.Log)
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// LastWords is the end of what it has said.
func (p *Process) LastWords() string {
	said := p.Said()
	return strings.TrimSpace(said[max(0, len(said)-2000):])
}
