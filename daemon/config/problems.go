package config

import (
	"fmt"
	"strings"
)

// An Error is everything that is wrong with a configuration.
type Error struct {
	Problems []Problem
}

// Error lists the problems, one a line.
func (e *Error) Error() string {
	lines := make([]string, 0, len(e.Problems))
	for _, problem := range e.Problems {
		lines = append(lines, problem.String())
	}
	return "the configuration is refused:\n  " + strings.Join(lines, "\n  ")
}

// A Problem is one thing that is wrong.
type Problem struct {
	Source string // where it is, for instance "file posthaste.yaml:12"; empty where it is nowhere
	Key    string // empty where it is of no key
	Text   string
}

// String says where, what and why.
func (p Problem) String() string {
	text := p.Text
	if p.Key != "" {
		text = p.Key + ": " + text
	}
	if p.Source != "" {
		text = p.Source + ": " + text
	}
	return text
}

// maxProblems is how many are told: who has more has given the wrong file.
const maxProblems = 100

// problems are collected while the sources are read.
type problems struct {
	found []Problem
}

// full tells that further problems need not be looked at closely.
func (p *problems) full() bool { return len(p.found) >= maxProblems }

func (p *problems) addf(source, key, format string, args ...any) {
	switch {
	case !p.full():
		p.found = append(p.found, Problem{Source: source, Key: key, Text: fmt.Sprintf(format, args...)})
	case len(p.found) == maxProblems:
		p.found = append(p.found, Problem{Text: "and more"})
	}
}
