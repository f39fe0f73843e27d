// Package gotest runs tests for proofs and reads what became of each.
package gotest

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
	"slices"
	"strconv"
	"strings"
)

// Results is what go test said, test by test. A test's name is package.Test/sub, with the last part of the package's
// path.
type Results struct {
	Outcomes map[string]string         // pass, fail or skip
	Figures  map[string]map[string]int // that tests reported as attributes, by figure, then by test
	Outputs  map[string]string
}

// New returns empty results.
func New() *Results {
	return &Results{Outcomes: map[string]string{}, Figures: map[string]map[string]int{}, Outputs: map[string]string{}}
}

// Line is one line of go test -json.
type Line struct {
	Action, Package, Test, Key, Value, Output string
}

// Run runs go test and adds what it says. A failing test is no error here.
func (r *Results) Run(ctx context.Context, environment []string, args ...string) error {
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
	if err := r.read(output, func(*Line) bool { return true }); err != nil {
		return errors.Join(err, command.Wait())
	}
	var failed *exec.ExitError
	if err := command.Wait(); err != nil && !errors.As(err, &failed) {
		return fmt.Errorf("go test: %w", err)
	}
	return nil
}

// Load adds what an earlier run has kept of one package: of the tests that are named, or of all.
func (r *Results) Load(file, importPath string, tests ...string) error {
	from, err := os.Open(file)
	if err != nil {
		return fmt.Errorf("the results of an earlier run: %w", err)
	}
	defer from.Close()
	return r.read(from, func(l *Line) bool {
		name, _, _ := strings.Cut(l.Test, "/")
		return l.Package == importPath && (len(tests) == 0 || l.Test == "" || slices.Contains(tests, name))
	})
}

// read adds the lines that are wanted.
func (r *Results) read(from io.Reader, wanted func(*Line) bool) error {
	scanner := bufio.NewScanner(from)
	scanner.Buffer(nil, 64<<20) // a failing test may print a lot
	for scanner.Scan() {
		var l Line
		if err := json.Unmarshal(scanner.Bytes(), &l); err != nil {
			return fmt.Errorf("go test -json said %.200q: %w", scanner.Text(), err)
		}
		if wanted(&l) {
			r.Add(l)
		}
	}
	if err := scanner.Err(); err != nil {
		return fmt.Errorf("read go test: %w", err)
	}
	return nil
}

// Add takes in a line.
func (r *Results) Add(l Line) {
	name := path.Base(l.Package)
	if l.Test != "" {
		name += "." + l.Test
	}
	switch l.Action {
	case "pass", "fail", "skip":
		r.Outcomes[name] = l.Action
	case "output", "build-output":
		if !strings.HasPrefix(strings.TrimSpace(l.Output), "=== ") {
			r.Outputs[name] += l.Output
		}
	case "attr":
		if n, err := strconv.Atoi(l.Value); err == nil {
			if r.Figures[l.Key] == nil {
				r.Figures[l.Key] = map[string]int{}
			}
			r.Figures[l.Key][name] = n
		}
	}
}
