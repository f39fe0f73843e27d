package quickstart

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
)

// A Block is a piece of a page between two fences.
type Block struct {
	Page     string
	Line     int // of the first fence
	Language string
	Text     string
	// Notes are what the comments right above it say of it, by their names.
	Notes map[string]string
}

// The comments that a block can have right above it.
const (
	noteNotRun  = "not run"  // why nobody runs it
	noteStays   = "stays"    // it runs in a terminal of its own, until the page ends: what the terminal is called
	noteShownBy = "shown by" // it is what that terminal shows
)

// MostNotRun is how many blocks of all pages may be left alone.
const MostNotRun = 15

// shortestReason is what a reason has at least.
const shortestReason = 15

var notePattern = regexp.MustCompile(`^<!-- *(.*?) *-->$`)

// ReadBlocks takes a page apart. With a section it reads that one alone.
func ReadBlocks(page, text, section string) (blocks []Block, problems []string) {
	var block *Block
	notes, inside := map[string]string{}, section == ""
	for number, line := range strings.Split(text, "\n") {
		fence, isFence := strings.CutPrefix(line, "```")
		note := notePattern.FindStringSubmatch(line)
		switch {
		case block != nil && isFence:
			blocks, block = append(blocks, *block), nil
		case block != nil:
			block.Text += line + "\n"
		case section != "" && strings.HasPrefix(line, "## "):
			inside = line == "## "+section
		case !inside:
		case isFence:
			block = &Block{Page: page, Line: number + 1, Language: fence, Notes: notes}
			problems = append(problems, block.wrongNotes()...)
			notes = map[string]string{}
		case note != nil:
			name, value, _ := strings.Cut(note[1], ":")
			notes[strings.TrimSpace(name)] = strings.TrimSpace(value)
		default:
			notes = map[string]string{}
		}
	}
	if block != nil {
		problems = append(problems, block.problem("it does not end"))
	}
	if len(blocks) == 0 {
		problems = append(problems, page+": no block is there")
	}
	return blocks, problems
}

// At is where it stands.
func (b *Block) At() string { return fmt.Sprintf("%s:%d", b.Page, b.Line) }

func (b *Block) problem(format string, args ...any) string {
	return b.At() + ": " + fmt.Sprintf(format, args...)
}

func (b *Block) wrongNotes() (problems []string) {
	for name, value := range b.Notes {
		switch {
		case !slices.Contains([]string{noteNotRun, noteStays, noteShownBy}, name):
			problems = append(problems, b.problem("nobody knows what the comment %q above it means", name))
		case name == noteNotRun && len(value) < shortestReason:
			problems = append(problems, b.problem("it is not run, and the comment gives no reason: %q", value))
		case value == "":
			problems = append(problems, b.problem("the comment %q names no terminal", name))
		}
	}
	return problems
}

// first is the first line of it, for people.
func (b *Block) first() string {
	line, _, _ := strings.Cut(strings.TrimSpace(b.Text), "\n")
	return line
}
