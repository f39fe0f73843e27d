package publisher

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/test/cluster"
)

// Program is an outbox-publisher that runs.
type Program struct {
	// Address is where its probes answer.
	Address string
	// Log is the file of what it says.
	Log string
	// Ended is closed when the process is gone; ExitCode is known then.
	Ended   chan struct{}
	command *exec.Cmd
}

// answering is the line of the log, JSON or text, that tells where the probes answer.
var answering = regexp.MustCompile(`answering probes"?[, ]+"?address"?[:=]"?([0-9.:]+)`)

// StartProgram starts the binary with these arguments, an environment of nothing but this, and a log of its own, and returns when
// its probes answer.
func StartProgram(ctx context.Context, binary, log string, environment []string, args ...string) (*Program, error) {
	p, err := Launch(binary, log, environment, args...)
	if err != nil {
		return nil, err
	}
	err = cluster.Within(ctx, patience, "outbox-publisher answers probes", func() (bool, error) {
		said, err := os.ReadFile(log)
		if found := answering.FindSubmatch(said); err == nil && found != nil {
			p.Address = string(found[1])
			return true, nil
		}
		select {
		case <-p.Ended:
			return true, fmt.Errorf("publisher: it ended with %d while it started: %s", p.ExitCode(), said[max(0, len(said)-2000):])
		default:
			return false, err
		}
	})
	if err != nil {
		p.Kill()
		return nil, err
	}
	return p, nil
}

// Launch starts the binary and does not wait for anything.
func Launch(binary, log string, environment []string, args ...string) (*Program, error) {
	file, err := os.Create(log)
	if err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	defer file.Close() // the process has its own
	// Not CommandContext: it is to be stopped in order, or by Kill.
	p := &Program{Log: log, command: exec.Command(binary, args...), Ended: make(chan struct{})}
	p.command.Env, p.command.Stdout, p.command.Stderr = environment, file, file
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		return nil, fmt.Errorf("publisher: start %s: %w", binary, err)
	}
	go func() {
		defer close(p.Ended)
		_ = p.command.Wait() // its exit code is looked at
	}()
	return p, nil
}

// PID is the process's.
func (p *Program) PID() int { return p.command.Process.Pid }

// Alive tells whether the process has not ended.
func (p *Program) Alive() bool {
	select {
	case <-p.Ended:
		return false
	default:
		return true
	}
}

// ExitCode is that of a process that has ended; negative: a signal killed it.
func (p *Program) ExitCode() int { return p.command.ProcessState.ExitCode() }

// Kill ends it at once.
func (p *Program) Kill() {
	_ = p.command.Process.Kill() // it may have ended
	<-p.Ended
}

// Freeze holds it still, so that it can be looked at what it has left where, until it is killed.
func (p *Program) Freeze() error {
	if err := p.command.Process.Signal(syscall.SIGSTOP); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("publisher: freeze: %w", err)
	}
	return nil
}

// Stop asks the process to stop as `kill` does, and waits for so long at most. It returns how long the stop took; a
// process that does not end is killed, and that is its exit code.
func (p *Program) Stop(most time.Duration) (time.Duration, error) {
	began := time.Now()
	if err := p.command.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return 0, fmt.Errorf("publisher: stop: %w", err)
	}
	timer := time.NewTimer(most)
	defer timer.Stop()
	select {
	case <-p.Ended:
	case <-timer.C:
		p.Kill()
	}
	return time.Since(began), nil
}

// askTime is how long a probe may take: much longer than the probes' own limits.
const askTime = 20 * time.Second

// Ask asks for a path. A status of 0 means that nobody answered in time, and the body tells why.
func (p *Program) Ask(ctx context.Context, method, path string) (status int, body string) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, method, "http://"+p.Address+path, strings.NewReader(""))
	if err != nil {
		return 0, err.Error()
	}
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	answer, err := client.Do(request)
	if err != nil {
		return 0, err.Error()
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		return 0, err.Error()
	}
	return answer.StatusCode, string(text)
}
