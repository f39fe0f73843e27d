package inboxstorm

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/posthaste-dev/posthaste/test/cluster"
)

// process is a life under way.
type process struct {
	life    life
	command *exec.Cmd
	folder  string
	done    chan struct{} // closed when it has ended; err is set then
	err     error
	asked   bool // to end
}

// start begins a life that dies at a point, if one is given, as POSTHASTE_CRASH has it.
func start(executable, folder string, l life, point string, environment []string) (*process, error) {
	p := &process{folder: folder, done: make(chan struct{})}
	l.Journal = filepath.Join(folder, l.Name+".journal")
	p.life = l
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("inboxstorm: %w", err)
	}
	if err := os.WriteFile(p.file("json"), text, 0o600); err != nil {
		return nil, fmt.Errorf("inboxstorm: %w", err)
	}
	log, err := os.Create(p.file("log"))
	if err != nil {
		return nil, fmt.Errorf("inboxstorm: %w", err)
	}
	defer log.Close() // the process has its own
	p.command = exec.Command(executable, "live", p.file("json"))
	p.command.Stdout, p.command.Stderr = log, log
	p.command.Env = append(append(os.Environ(), "POSTHASTE_CRASH="+point, "POSTHASTE_CRASH_FILE="+p.file("death")), environment...)
	p.command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also if the proof dies
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("inboxstorm: start a consumer: %w", err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()
	return p, nil
}

func (p *process) file(kind string) string { return filepath.Join(p.folder, p.life.Name+"."+kind) }

// signal sends a signal; to a process that has ended it does nothing.
func (p *process) signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("inboxstorm: signal %s: %w", p.life.Name, err)
	}
	return nil
}

// stop lets the process stand still, and returns when it does: until then it may do something still.
func (p *process) stop(ctx context.Context) error {
	if err := p.signal(syscall.SIGSTOP); err != nil {
		return err
	}
	return cluster.Until(ctx, p.life.Name+" stands still", func() (bool, error) {
		select {
		case <-p.done:
			return true, nil
		default:
		}
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.command.Process.Pid))
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

// ending is how a life ended, once it has.
func (p *process) ending() (ending, error) {
	<-p.done
	if p.err == nil {
		return ending{}, nil
	}
	if exit, is := errors.AsType[*exec.ExitError](p.err); is {
		switch status, _ := exit.Sys().(syscall.WaitStatus); {
		case status.Signaled() && status.Signal() == syscall.SIGTERM && p.asked: // before it could listen
			return ending{}, nil
		case status.Signaled() && status.Signal() == syscall.SIGKILL:
			text, err := os.ReadFile(p.file("death")) // there is none when the parent has killed it
			if err != nil && !errors.Is(err, os.ErrNotExist) {
				return ending{}, fmt.Errorf("inboxstorm: %w", err)
			}
			point, _, _ := strings.Cut(string(text), " ")
			return ending{Killed: true, Point: point}, nil
		}
	}
	words, err := os.ReadFile(p.file("log"))
	return ending{}, errors.Join(fmt.Errorf("inboxstorm: %s failed: %w: %s", p.life.Name, p.err, words[max(0, len(words)-2000):]), err)
}
