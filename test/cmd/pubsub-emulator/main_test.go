package main

import (
	"bufio"
	"bytes"
	"context"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

// asCommand makes the test binary be the command, so that tests can kill the real thing. With -race it
// has the race detector too.
const asCommand = "PUBSUB_EMULATOR_TEST_AS_COMMAND"

const patience = 5 * time.Minute

func TestMain(m *testing.M) {
	if os.Getenv(asCommand) != "" {
		main()
	}
	os.Exit(goroutines.Run(m, goroutines.Linked, goroutines.Received))
}

// process is a running command.
type process struct {
	cmd    *exec.Cmd
	stderr *bytes.Buffer
	addr   string
}

var readyLine = regexp.MustCompile(`^pubsub-emulator: PUBSUB_EMULATOR_HOST=(127\.0\.0\.1:\d+) ` +
	`faults=http://127\.0\.0\.1:\d+ journal=.+\n$`)

// launch starts the command and waits for the line that says where it listens.
func launch(t *testing.T, dir string) *process {
	t.Helper()
	cmd := exec.Command(os.Args[0], "-addr", "127.0.0.1:0", "-fault-addr", "127.0.0.1:0", "-dir", dir)
	cmd.Env = append(os.Environ(), asCommand+"=1")
	p := &process{cmd: cmd, stderr: &bytes.Buffer{}}
	cmd.Stderr = p.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	defer time.AfterFunc(patience, func() { _ = cmd.Process.Kill() }).Stop() // which ends what it says
	line, err := bufio.NewReader(stdout).ReadString('\n')
	match := readyLine.FindStringSubmatch(line)
	if match == nil {
		t.Fatalf("the command said %q, %v", line, err)
	}
	p.addr = match[1]
	return p
}

// end sends the signal and waits for the process to be gone.
func (p *process) end(t *testing.T, signal os.Signal) error {
	t.Helper()
	if err := p.cmd.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
	defer time.AfterFunc(patience, func() { // it says where it stands
		t.Errorf("the command has not ended within %s of a signal", patience)
		_ = p.cmd.Process.Signal(syscall.SIGQUIT)
	}).Stop()
	err := p.cmd.Wait()
	if strings.Contains(p.stderr.String(), "DATA RACE") {
		t.Errorf("the command has a race:\n%s", p.stderr)
	}
	return err
}

func TestSignalsStopCleanly(t *testing.T) {
	t.Parallel()
	for _, signal := range []os.Signal{syscall.SIGTERM, os.Interrupt} {
		p := launch(t, t.TempDir())
		if err := p.end(t, signal); err != nil || p.stderr.Len() > 0 {
			t.Errorf("%v: %v, stderr %q", signal, err, p.stderr)
		}
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		args           []string
		code           int
		stdout, stderr string // parts
	}{
		{[]string{"-h"}, 0, `"kind":"drop_answer","mode":"hang"`, ""},
		{[]string{}, 2, "", "-dir DIR"},
		{[]string{"-dir", "d", "extra"}, 2, "", `unexpected argument "extra"`},
		{[]string{"-port", "1"}, 2, "", "not defined: -port"},
		{[]string{"-dir", t.TempDir(), "-addr", "0.0.0.0:1"}, 1, "", "loopback"},
	} {
		var stdout, stderr bytes.Buffer
		ctx, cancel := context.WithCancel(t.Context())
		cancel() // should it start all the same, it stops at once
		code := run(ctx, test.args, &stdout, &stderr)
		if code != test.code || !strings.Contains(stdout.String(), test.stdout) ||
			!strings.Contains(stderr.String(), test.stderr) {
			t.Errorf("%v: exit %d, stdout %q, stderr %q", test.args, code, &stdout, &stderr)
		}
	}
}
