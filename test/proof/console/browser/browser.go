// Package browser drives a real Chromium, by Playwright in a process of Node.js: what scripts/browser installs.
//
// It decides nothing. What a page has shown, asked and reported is handed to whoever opened it.
package browser

import (
	"bufio"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"
)

//go:embed drive.mjs
var driver []byte

// patience ends what hangs: a browser that does not start or end, an answer that never comes.
const patience = 3 * time.Minute

// Programs are where the parts of a browser are.
type Programs struct{ Chromium, Node, Modules string }

// Find installs what is missing, by scripts/browser of the repository that the working directory is in.
func Find(ctx context.Context) (p Programs, err error) {
	script, err := installer()
	if err != nil {
		return p, err
	}
	said, err := exec.CommandContext(ctx, script).Output()
	if failed := (*exec.ExitError)(nil); errors.As(err, &failed) {
		return p, fmt.Errorf("browser: scripts/browser: %w: %s", err, failed.Stderr)
	} else if err != nil {
		return p, fmt.Errorf("browser: %w", err)
	}
	for line := range strings.Lines(string(said)) {
		name, path, _ := strings.Cut(strings.TrimSpace(line), "=")
		switch name {
		case "chromium":
			p.Chromium = path
		case "node":
			p.Node = path
		case "modules":
			p.Modules = path
		}
	}
	if p.Chromium == "" || p.Node == "" || p.Modules == "" {
		return p, fmt.Errorf("browser: scripts/browser does not say where all is: %s", said)
	}
	return p, nil
}

// installer looks for scripts/browser, upwards from the working directory.
func installer() (string, error) {
	folder, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("browser: %w", err)
	}
	for ; ; folder = filepath.Dir(folder) {
		script := filepath.Join(folder, "scripts", "browser")
		if _, err := os.Stat(script); err == nil {
			return script, nil
		}
		if folder == filepath.Dir(folder) {
			return "", errors.New("browser: there is no scripts/browser above the working directory: run it in the repository")
		}
	}
}

// Browser is a Chromium that runs.
type Browser struct {
	// Version is Chromium's.
	Version string

	folder  string
	process *exec.Cmd
	say     io.WriteCloser
	log     strings.Builder // complete when the process has ended
	ended   chan struct{}

	mu      sync.Mutex
	last    int
	waiting map[int]chan<- answer
}

// answer is what the driver says to a command.
type answer struct {
	ID    int             `json:"id"`
	Value json.RawMessage `json:"value"`
	Error string          `json:"error"`
}

// Start finds a browser and starts it. Close ends it.
func Start(ctx context.Context) (*Browser, error) {
	programs, err := Find(ctx)
	if err != nil {
		return nil, err
	}
	b := &Browser{ended: make(chan struct{}), waiting: map[int]chan<- answer{}}
	if b.folder, err = os.MkdirTemp("", "browser-"); err != nil {
		return nil, fmt.Errorf("browser: %w", err)
	}
	if err := b.start(ctx, programs); err != nil {
		return nil, errors.Join(err, os.RemoveAll(b.folder))
	}
	return b, nil
}

func (b *Browser) start(ctx context.Context, programs Programs) error {
	script := filepath.Join(b.folder, "drive.mjs")
	if err := os.WriteFile(script, driver, 0o600); err != nil {
		return fmt.Errorf("browser: %w", err)
	}
	// Not CommandContext: it is asked to end, so that Chromium ends with it.
	b.process = exec.Command(programs.Node, script, programs.Chromium, programs.Modules)
	b.process.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	b.process.Stderr = &b.log
	// What Chromium writes into the home of whoever runs it goes with the folder.
	b.process.Env = append(os.Environ(), "HOME="+b.folder, "TMPDIR="+b.folder)
	said, err := b.process.StdoutPipe()
	if err != nil {
		return fmt.Errorf("browser: %w", err)
	}
	if b.say, err = b.process.StdinPipe(); err != nil {
		return fmt.Errorf("browser: %w", err)
	}
	ready := make(chan answer, 1)
	b.waiting[0] = ready
	if err := b.process.Start(); err != nil {
		return fmt.Errorf("browser: %w", err)
	}
	go b.listen(said)
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := b.await(ctx, ready, &b.Version); err != nil {
		return errors.Join(fmt.Errorf("browser: it does not start: %w", err), b.end())
	}
	return nil
}

// listen hands out answers until the driver ends.
func (b *Browser) listen(said io.Reader) {
	defer close(b.ended)
	lines := bufio.NewReader(said)
	for {
		line, err := lines.ReadBytes('\n')
		if err != nil {
			return
		}
		var a answer
		if err := json.Unmarshal(line, &a); err != nil {
			continue // something else wrote to its output
		}
		b.mu.Lock()
		to := b.waiting[a.ID]
		delete(b.waiting, a.ID)
		b.mu.Unlock()
		if to != nil {
			to <- a
		}
	}
}

// command sends one and waits for its answer.
func (b *Browser) command(ctx context.Context, name string, arguments map[string]any, into any) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	to := make(chan answer, 1)
	b.mu.Lock()
	b.last++
	line := map[string]any{"id": b.last, "command": name}
	maps.Copy(line, arguments)
	b.waiting[b.last] = to
	text, err := json.Marshal(line)
	if err == nil {
		_, err = b.say.Write(append(text, '\n'))
	}
	b.mu.Unlock()
	if err == nil {
		err = b.await(ctx, to, into)
	}
	if err != nil {
		return fmt.Errorf("browser: %s: %w", name, err)
	}
	return nil
}

func (b *Browser) await(ctx context.Context, from <-chan answer, into any) error {
	select {
	case a := <-from:
		switch {
		case a.Error != "":
			return errors.New(a.Error)
		case into == nil:
			return nil
		}
		return json.Unmarshal(a.Value, into)
	case <-b.ended:
		return errors.New("the browser has ended")
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// Close ends the browser.
func (b *Browser) Close() error { return errors.Join(b.end(), os.RemoveAll(b.folder)) }

func (b *Browser) end() error {
	_ = b.say.Close() // it may have ended by itself
	timer := time.NewTimer(patience)
	defer timer.Stop()
	killed := false
	select {
	case <-b.ended:
	case <-timer.C:
		killed = true
		_ = syscall.Kill(-b.process.Process.Pid, syscall.SIGKILL) // of its own group
		<-b.ended
	}
	if err := b.process.Wait(); err != nil || killed {
		return fmt.Errorf("browser: %w: %s", errors.Join(err, errors.New("it did not end well")), b.log.String())
	}
	return nil
}
