package quickstart

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"sync"
	"syscall"
	"time"
)

// A Terminal types commands in a folder, with an environment.
type Terminal struct {
	Folder  string
	Environ []string
	Log     io.Writer
}

// With is the same terminal with more variables.
func (t Terminal) With(variables ...string) Terminal {
	t.Environ = append(append([]string(nil), t.Environ...), variables...)
	return t
}

// Run types a command and returns what it showed when it has ended.
func (t Terminal) Run(ctx context.Context, command string) (shown string, err error) {
	running, err := t.Start(ctx, command)
	if err != nil {
		return "", err
	}
	err = running.wait()
	if ctx.Err() != nil {
		err = fmt.Errorf("%s: %w", command, ctx.Err())
	}
	return running.Shown(), err
}

// Running is a command that was typed.
type Running struct {
	command *exec.Cmd
	typed   string
	ended   chan struct{}
	how     error

	mutex   sync.Mutex
	shown   bytes.Buffer
	changed chan struct{}
	log     io.Writer
}

// Start types a command and does not wait for it.
func (t Terminal) Start(ctx context.Context, command string) (*Running, error) {
	_, _ = fmt.Fprintf(t.Log, "$ %s\n", command)
	return t.start(ctx, command, nil, "-c", command)
}

// start starts bash with some arguments. What keys says is typed into it.
func (t Terminal) start(ctx context.Context, typed string, keys *os.File, arguments ...string) (*Running, error) {
	r := &Running{typed: typed, ended: make(chan struct{}), changed: make(chan struct{}, 1), log: t.Log}
	r.command = exec.CommandContext(ctx, "bash", arguments...)
	r.command.Dir, r.command.Env = t.Folder, t.Environ
	if keys != nil {
		r.command.Stdin = keys
	}
	r.command.Stdout, r.command.Stderr = r, r
	r.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	r.command.Cancel = func() error { return syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL) }
	r.command.WaitDelay = 10 * time.Second
	if err := r.command.Start(); err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	go func() {
		r.how = r.command.Wait()
		close(r.ended)
	}()
	return r, nil
}

// Write takes what the command shows.
func (r *Running) Write(text []byte) (int, error) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.shown.Write(text)
	_, _ = r.log.Write(text)
	select {
	case r.changed <- struct{}{}:
	default:
	}
	return len(text), nil
}

// Shown is what it has shown so far.
func (r *Running) Shown() string {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.shown.String()
}

// errNotShown is what did not come.
var errNotShown = errors.New("was not shown")

// Await waits until it shows something.
func (r *Running) Await(ctx context.Context, pattern *regexp.Regexp, patience time.Duration) error {
	return r.awaitText(ctx, patience, func() string {
		if pattern.MatchString(r.Shown()) {
			return ""
		}
		return fmt.Sprintf("%q %v", pattern, errNotShown)
	})
}

// awaitText waits until nothing is missing from what it shows.
func (r *Running) awaitText(ctx context.Context, patience time.Duration, missing func() string) error {
	late := time.NewTimer(patience)
	defer late.Stop()
	for what := missing(); what != ""; what = missing() {
		select {
		case <-r.changed:
		case <-r.ended:
			if what = missing(); what == "" {
				return nil
			}
			return fmt.Errorf("%s: %s has ended (%v)", what, r.typed, r.how) //nolint:errorlint // may be nil
		case <-late.C:
			return fmt.Errorf("%s within %s by %s", what, patience, r.typed)
		case <-ctx.Done():
			return fmt.Errorf("quickstart: %w", ctx.Err())
		}
	}
	return nil
}

func (r *Running) wait() error {
	<-r.ended
	return r.how
}

// kill ends it at once, with all that it has started.
func (r *Running) kill() {
	select {
	case <-r.ended: // its number may be somebody else's by now
		return
	default:
	}
	_ = syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL) // it may have ended meanwhile
	<-r.ended
}

// Stop is Ctrl-C. It returns how the command has ended; one that does not end is killed.
func (r *Running) Stop(patience time.Duration) error {
	select {
	case <-r.ended: // its number may be somebody else's by now
		return r.how
	default:
	}
	if err := syscall.Kill(-r.command.Process.Pid, syscall.SIGINT); err != nil && !errors.Is(err, syscall.ESRCH) {
		return fmt.Errorf("quickstart: %w", err)
	}
	select {
	case <-r.ended:
		return r.how
	case <-time.After(patience):
		_ = syscall.Kill(-r.command.Process.Pid, syscall.SIGKILL) // it may have ended meanwhile
		<-r.ended
		return fmt.Errorf("%s did not end within %s of Ctrl-C", r.typed, patience)
	}
}

// environ is this process's environment without what would change the meaning of what is typed, and more.
func environ(more ...string) []string {
	keep := []string{"HOME", "LANG", "TMPDIR", "SSL_CERT_FILE", "SSL_CERT_DIR", "GOCACHE", "GOSUMDB", "HTTPS_PROXY"}
	var all []string
	for _, name := range keep {
		if value, set := os.LookupEnv(name); set {
			all = append(all, name+"="+value)
		}
	}
	return append(all, more...)
}
