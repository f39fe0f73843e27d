// Package present prints what a command found: tables and sentences for people, JSON for programs. What it prints may
// be what somebody wrote into the database, so nothing of it speaks to the terminal.
package present

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/posthaste-dev/posthaste/internal/clean"
)

// Format is how a result is printed.
type Format string

// The formats. JSON is one document, NDJSON one document per line, as they come.
const (
	Table  Format = "table"
	JSON   Format = "json"
	NDJSON Format = "ndjson"
)

// Set reads the value of a flag.
func (f *Format) Set(text string) error {
	switch format := Format(text); format {
	case Table, JSON, NDJSON:
		*f = format
		return nil
	}
	return fmt.Errorf("%.20q is none of table, json and ndjson", text)
}

func (f *Format) String() string { return string(*f) }

// Type is what help calls the value.
func (*Format) Type() string { return "table|json|ndjson" }

// Style is how a text looks on a terminal that has colours. It never carries a meaning that the text does not have.
type Style string

// The styles, as SGR parameters.
const (
	Plain Style = ""
	Bold  Style = "1"
	Faint Style = "2"
	Bad   Style = "31"
	Good  Style = "32"
	Warn  Style = "33"
)

// A Printer prints the results of one command.
type Printer struct {
	to     io.Writer
	format Format
	colors bool
}

// New makes a printer. The writer is the terminal or file itself: a printer cleans what it prints, and adds colours
// only then.
func New(to io.Writer, format Format, colors bool) *Printer {
	return &Printer{to: to, format: format, colors: colors && format == Table}
}

// ForPeople says whether tables and sentences are wanted.
func (p *Printer) ForPeople() bool { return p.format == Table }

// Paint cleans a text and gives it a style.
func (p *Printer) Paint(style Style, text string) string {
	text = clean.Line(text)
	if !p.colors || style == Plain || text == "" {
		return text
	}
	return "\x1b[" + string(style) + "m" + text + "\x1b[0m"
}

// Line prints a line for people; programs do not see it. Each part is painted already, or is our own text.
func (p *Printer) Line(parts ...string) error {
	if !p.ForPeople() {
		return nil
	}
	return p.write(strings.TrimRight(strings.Join(parts, ""), " ") + "\n")
}

// One prints a result that is one thing: for people as text says it, line by line, which is painted already.
func (p *Printer) One(value any, text func() []string) error {
	if p.ForPeople() {
		for _, line := range text() {
			if err := p.Line(line); err != nil {
				return err
			}
		}
		return nil
	}
	return p.encode(value)
}

// Stream prints one of many results as it comes: a line for people, a document of its own for programs.
func (p *Printer) Stream(value any, line func() string) error {
	if p.ForPeople() {
		return p.Line(line())
	}
	return p.encodeAs(NDJSON, value)
}

// A Column is one column of a table.
type Column[T any] struct {
	Name  string
	Of    func(T) string
	Style func(T) Style // defaults to Plain
	Right bool          // numbers stand at the right
	// Optional leaves the column out where it is empty in every row.
	Optional bool
}

// List prints rows: as a table, as one array, or as a document per line. none is the sentence for people if there are
// no rows.
func List[T any](p *Printer, rows []T, none string, columns ...Column[T]) error {
	switch p.format {
	case Table:
	case JSON:
		if rows == nil {
			rows = []T{}
		}
		return p.encode(rows)
	case NDJSON:
		for _, row := range rows {
			if err := p.encode(row); err != nil {
				return err
			}
		}
		return nil
	}
	if len(rows) == 0 {
		return p.Line(none)
	}
	return p.write(Draw(p, rows, columns...))
}

// Draw draws rows with their columns below each other, for people.
func Draw[T any](p *Printer, rows []T, columns ...Column[T]) string {
	cells := make([][]string, len(rows)+1)
	widths := make([]int, len(columns))
	used := make([]bool, len(columns))
	for i, column := range columns {
		for line := range cells {
			text := column.Name
			if line > 0 {
				text = clean.Line(column.Of(rows[line-1]))
				used[i] = used[i] || text != ""
			}
			cells[line] = append(cells[line], text)
			widths[i] = max(widths[i], utf8.RuneCountInString(text))
		}
	}
	var lines strings.Builder
	for line := range cells {
		var parts []string
		for i, column := range columns {
			if column.Optional && !used[i] {
				continue
			}
			text, style := cells[line][i], Faint
			if line > 0 {
				style = Plain
				if column.Style != nil {
					style = column.Style(rows[line-1])
				}
			}
			gap := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(text))
			if column.Right {
				parts = append(parts, gap+p.Paint(style, text))
			} else {
				parts = append(parts, p.Paint(style, text)+gap)
			}
		}
		lines.WriteString(strings.TrimRight(strings.Join(parts, "  "), " ") + "\n")
	}
	return lines.String()
}

func (p *Printer) encode(value any) error { return p.encodeAs(p.format, value) }

// encodeAs prints a document: indented where it is the only one.
func (p *Printer) encodeAs(format Format, value any) error {
	var text strings.Builder
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	if format == JSON {
		encoder.SetIndent("", "  ")
	}
	if err := encoder.Encode(value); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return p.write(escape(text.String()))
}

// escape writes what speaks to a terminal, or turns and hides the text around it, as JSON may write every character.
func escape(document string) string {
	var text strings.Builder
	for _, r := range document {
		switch {
		case r == '\n' || !unicode.IsControl(r) && !unicode.Is(unicode.Cf, r):
			text.WriteRune(r)
		case r > 0xFFFF:
			high, low := utf16.EncodeRune(r)
			fmt.Fprintf(&text, `\u%04x\u%04x`, high, low)
		default:
			fmt.Fprintf(&text, `\u%04x`, r)
		}
	}
	return text.String()
}

func (p *Printer) write(text string) error {
	if _, err := io.WriteString(p.to, text); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
