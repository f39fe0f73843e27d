package publisher

import (
	"errors"
	"fmt"
	"strings"
)

// Steps are what a section of a page tells people to do first: the commands of its first block of shell, without what
// is said about them, and its first query, if there is one.
type Steps struct {
	Commands []string
	Query    string
}

// ReadSteps finds them in a page's text.
func ReadSteps(page, section string) (Steps, error) {
	_, text, found := strings.Cut(page, "\n## "+section+"\n")
	if !found {
		return Steps{}, fmt.Errorf("publisher: the page has no section %q", section)
	}
	text, _, _ = strings.Cut(text, "\n## ")
	var steps Steps
	for line := range strings.Lines(block(text, "sh")) {
		command, _, _ := strings.Cut(line, " #")
		if command = strings.TrimSpace(command); command != "" && !strings.HasPrefix(command, "#") {
			steps.Commands = append(steps.Commands, command)
		}
	}
	if len(steps.Commands) < 2 {
		return Steps{}, errors.New("publisher: the section has fewer than two commands: one that runs a publisher, and one " +
			"that emits an event")
	}
	steps.Query = strings.TrimSpace(block(text, "sql"))
	return steps, nil
}

// block is the first block of a language.
func block(text, language string) string {
	_, rest, _ := strings.Cut(text, "```"+language+"\n")
	code, _, _ := strings.Cut(rest, "```")
	return code
}
