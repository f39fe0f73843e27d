package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path"
	"strconv"
	"strings"
)

const (
	repository = "github.com/posthaste-dev/posthaste/"
	module     = repository + "test/"
)

// results is what go test said, test by test. A test's name is package.Test/sub.
type results struct {
	outcomes map[string]string         // pass, fail or skip
	figures  map[string]map[string]int // by figure, then by test
	outputs  map[string]string
}

func newResults() *results {
	return &results{outcomes: map[string]string{}, figures: map[string]map[string]int{}, outputs: map[string]string{}}
}

// line is one line of go test -json.
type line struct {
	Action, Package, Test, Key, Value, Output string
}

// run runs go test and adds what it says. A failing test is no error here.
func (r *results) run(ctx context.Context, environment []string, args ...string) error {
	command := exec.CommandContext(ctx, "go", append([]string{"test", "-json", "-count=1", "-timeout=15m"}, args...)...)
	command.Env = append(os.Environ(), environment...)
	command.Stderr = os.Stderr
	output, err := command.StdoutPipe()
	if err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("go test: %w", err)
	}
	if err := r.read(output); err != nil {
		return errors.Join(err, command.Wait())
	}
	var failed *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

func (r *results) read(from io.Reader) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 1<<20)
	for scanner.Scan() {
		var l line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			return fmt.Errorf("go test -json said %.200q: %w", scanner.Text(), err)
		}
		r.add(l)
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read go test: %w", err)
	}
	return nil
}

func (r *results) add(l line) {
	name := path.Base(l.Package)
	if l.Test != "" {
		name += "." + l.Test
	}
	switch l.Action {
	case "pass", "fail", "skip":
		r.outcomes[name] = l.Action
	case "output", "build-output":
		if !strings.HasPrefix(strings.TrimSpace(l.Output), "=== ") {
			r.outputs[name] += l.Output
		}
	case "attr":
		if n, err := strconv.Atoi(l.Value); err == nil {
			if r.figures[l.Key] == nil {
				r.figures[l.Key] = map[string]int{}
			}
			r.figures[l.Key][name] = n
		}
	}
}
