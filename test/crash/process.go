package crash

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
	"time"
)

// process is a life under way.
type process struct {
	life    life
	command *exec.Cmd
	log     string
	done    chan struct{} // closed when it has ended; err is set then
	err     error
}

// start begins a life. Point, when given, is where it shall die, as POSTHASTE_CRASH has it; hit is the file
// that tells that it did.
func start(executable string, l life, point, hit string, environment []string) (*process, error) {
	text, err := json.Marshal(l)
	if err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	file := filepath.Join(l.Folder, "life-"+l.Name+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	p := &process{life: l, log: filepath.Join(l.Folder, "life-"+l.Name+".log"), done: make(chan struct{})}
	log, err := os.Create(p.log)
	if err != nil {
		return nil, fmt.Errorf("crash: %w", err)
	}
	defer log.Close() // the process has its own
	p.command = exec.Command(executable, "live", file)
	p.command.Stdout, p.command.Stderr = log, log
	p.command.Env = append(append(os.Environ(), "POSTHASTE_CRASH="+point, "POSTHASTE_CRASH_FILE="+hit), environment...)
	if _, err := p.command.StdinPipe(); err != nil { // held open as long as this process lives: relays end with it
		return nil, fmt.Errorf("crash: %w", err)
	}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("crash: start a %s: %w", l.Role, err)
	}
	go func() {
		p.err = p.command.Wait()
		close(p.done)
	}()
	return p, nil
}

// ended tells whether the process is gone.
func (p *process) ended() bool {
	select {
	case <-p.done:
		return true
	default:
		return false
	}
}

// killed tells whether it ended by SIGKILL.
func (p *process) killed() bool {
	var exit *exec.ExitError
	if !p.ended() || !errors.As(p.err, &exit) {
		return false
	}
	status, ok := exit.Sys().(syscall.WaitStatus)
	return ok && status.Signaled() && status.Signal() == syscall.SIGKILL
}

// await waits for the end; false: it did not come in time.
func (p *process) await(ctx context.Context, limit time.Duration) bool {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	select {
	case <-p.done:
		return true
	case <-ctx.Done():
		return false
	}
}

// signal sends a signal; to a process that has ended it does nothing.
func (p *process) signal(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("crash: signal %s: %w", p.life.Name, err)
	}
	return nil
}

// kill ends it, whatever it does.
func (p *process) kill() {
	_ = p.command.Process.Kill() // it may have ended just now
	<-p.done
}

// leaveTime is how long a relay that was asked to stop may take: its drain time, and much more.
const leaveTime = 2 * time.Minute

// leave asks it to stop, and waits until it has.
func (p *process) leave(ctx context.Context) error {
	if err := p.signal(syscall.SIGTERM); err != nil {
		return err
	}
	switch {
	case !p.await(ctx, leaveTime):
		p.kill()
		return fmt.Errorf("%s was asked to stop and did not within %s", p.life.Name, leaveTime)
	case p.err != nil:
		return fmt.Errorf("%s was asked to stop and failed: %w: %s", p.life.Name, p.err, p.lastWords())
	default:
		return nil
	}
}

// lastWords is the end of the process's log.
func (p *process) lastWords() string {
	text, err := os.ReadFile(p.log)
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-1000):]))
}
