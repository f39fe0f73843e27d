package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// The exit codes, which scripts rely on. `check` has its own, which monitoring systems prescribe.
const (
	exitDone      = 0
	exitFailed    = 1
	exitUsage     = 2
	exitNotFound  = 3
	exitNotLetIn  = 4
	exitFound     = 5 // by an audit
	exitInterrupt = 130
)

// problem is an error with a code for programs, and with what to do about it for people.
type problem struct {
	code string // as docs/reference/cli.md lists them
	exit int
	err  error
	hint string
}

func (p problem) Error() string {
	if strings.Contains(p.err.Error(), p.hint) {
		return p.err.Error()
	}
	return p.err.Error() + "; " + p.hint
}

func (p problem) Unwrap() error { return p.err }

// notFound is what was asked for by its name and is not there, or a search without a result.
func notFound(format string, args ...any) error {
	return problem{code: "not_found", exit: exitNotFound, err: fmt.Errorf(format, args...)}
}

// failure marks an error of the work itself. Every other error that a command line ends with is about
// how it was written.
type failure struct{ err error }

func (f failure) Error() string { return f.err.Error() }
func (f failure) Unwrap() error { return f.err }

// usageError marks an error that is found while working and is still about how the command was written.
type usageError struct{ problem string }

func (u usageError) Error() string { return u.problem }

// interrupted is the error of a command that a person has ended, without Go's name for that.
func interrupted(err error) error {
	texts := []string{"interrupted"}
	for line := range strings.Lines(err.Error()) { // errors that were joined have a line each
		line = strings.TrimSuffix(strings.TrimSpace(line), context.Canceled.Error())
		if line = strings.TrimSuffix(line, ": "); line != "" {
			texts = append(texts, line)
		}
	}
	return reworded{strings.Join(texts, ": "), err}
}

// report tells an error to whoever ran the command, and returns the exit code. path is the command.
func report(ctx context.Context, stderr io.Writer, err error, path string, asJSON bool) int {
	known := problem{
		code: "usage", exit: exitUsage, err: err, hint: fmt.Sprintf("run '%s --help' for how to use it", path),
	}
	if failed := (failure{}); errors.As(err, &failed) {
		known = problem{code: "failed", exit: exitFailed, err: err}
		var detail problem
		switch {
		case ctx.Err() != nil && errors.Is(err, context.Canceled):
			known = problem{code: "interrupted", exit: exitInterrupt, err: interrupted(err)}
		case errors.As(err, &detail):
			known = problem{code: detail.code, exit: detail.exit, err: err, hint: detail.hint}
		}
	}
	// Nobody is left to tell if these fail.
	if asJSON {
		message := strings.TrimSuffix(known.err.Error(), "; "+known.hint)
		_ = json.NewEncoder(stderr).Encode(map[string]map[string]string{
			"error": {"code": known.code, "message": message, "hint": known.hint},
		})
		return known.exit
	}
	_, _ = fmt.Fprintln(stderr, "outboxctl:", known.err)
	if known.code == "usage" {
		_, _ = fmt.Fprintf(stderr, "Run '%s --help' for how to use it.\n", path)
	}
	return known.exit
}
