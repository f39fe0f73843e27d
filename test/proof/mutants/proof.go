package mutants

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// proof is a run of a program that passes, and fails when a mistake is made that it is there to find.
type proof struct {
	build   build
	args    []string
	tests   []string // of a test binary: those that must pass
	says    string   // of a test binary: what it says when it finds the mistake, a regular expression
	counter string   // of a proof: the figure of its last line by which the mistake is seen
	zero    string   // of a proof: the figure that tells whether anything at all is wrong
}

// build is a program: a test binary, or a command.
type build struct {
	folder string // from the root of the repository
	test   bool
}

// test is one test of a package, and what it says when it finds the mistake: a test that fails with other words has
// found something else. It runs in the package's folder, against the servers.
func test(folder, name, says string) proof {
	return proof{
		build: build{folder, true}, args: []string{"-test.v", "-test.run", "^" + name + "$"}, tests: []string{name},
		says: says,
	}
}

// seeds is so many simulated worlds.
func seeds(n int, counter string) proof {
	return proof{
		build: build{"relay/internal/sim/proof-sim", false},
		args:  []string{"-stories=false", "-day", "none", "-seeds", strconv.Itoa(n)}, counter: counter, zero: "seeds_failed",
	}
}

// sequences is so many comparisons of PostgreSQL with its model.
func sequences(n int) proof {
	return proof{
		build: build{"relay/internal/modeltest/proof-model", false},
		args:  []string{"-seed", "1", "-sequences", strconv.Itoa(n)}, counter: "mismatches", zero: "mismatches",
	}
}

// String is the proof as one types it.
func (p *proof) String() string {
	if p.build.test {
		return fmt.Sprintf("go test ./%s -run %s", p.build.folder, strings.Join(p.tests, "|"))
	}
	return fmt.Sprintf("go run ./%s %s", p.build.folder, strings.Join(p.args, " "))
}

// outcome is what a run of a proof came to.
type outcome struct {
	exit int // -1: it was killed
	text string
}

// passed says why a run is not one in which all was well; empty: it is.
func (p *proof) passed(o outcome) string {
	if p.build.test {
		for _, name := range p.tests {
			if !strings.Contains(o.text, "\n--- PASS: "+name+" ") {
				return name + " did not pass"
			}
		}
		switch {
		case o.exit != 0:
			return fmt.Sprintf("it ended with %d", o.exit)
		case p.hasSaid(o):
			return fmt.Sprintf("it says %q also without the mistake", p.says)
		}
		return ""
	}
	// It may end with 1, because it says that so short a run is none.
	value, err := o.figure(p.zero)
	if err == "" && value != 0 {
		return fmt.Sprintf("%s is %d", p.zero, value)
	}
	return err
}

// atBegin finds what the runtime says of a panic.
var atBegin = regexp.MustCompile(`(?m)^\s*panic: `)

// panicked tells whether a run has panicked. A test may speak of a panic elsewhere in a line; a proof may go on after
// one, and tell of it anywhere.
func (p *proof) panicked(o outcome) bool {
	return atBegin.MatchString(o.text) || !p.build.test && strings.Contains(o.text, "panic: ")
}

// caught says why a run has not found the mistake for what it is; empty: it has.
func (p *proof) caught(o outcome) string {
	switch {
	case o.exit < 0:
		return "it did not end in time"
	case p.panicked(o):
		return "it panicked, which finds nothing"
	case o.exit != 1:
		return fmt.Sprintf("it ended with %d", o.exit)
	}
	if p.build.test {
		for _, name := range p.tests {
			if !strings.Contains(o.text, "\n--- FAIL: "+name+" ") {
				return name + " did not fail"
			}
		}
		if !p.hasSaid(o) {
			return fmt.Sprintf("it failed for another reason: it does not say %q", p.says)
		}
		return ""
	}
	value, err := o.figure(p.counter)
	if err == "" && value == 0 {
		return p.counter + " is 0"
	}
	return err
}

// hasSaid tells whether a test has said what it says when it finds the mistake.
func (p *proof) hasSaid(o outcome) bool {
	return regexp.MustCompile(p.says).MatchString(o.text)
}

// figure reads a figure of the last line.
func (o *outcome) figure(name string) (value int, err string) {
	lines := strings.Split(strings.TrimSpace(o.text), "\n")
	last := lines[len(lines)-1]
	_, after, found := strings.Cut(last, " "+name+"=")
	text, _, _ := strings.Cut(after, " ")
	value, failed := strconv.Atoi(text)
	if !found || failed != nil || !strings.HasPrefix(last, "proof-") {
		return 0, fmt.Sprintf("its last line has no figure %s: %.200s", name, last)
	}
	return value, ""
}
