package main

import (
	"cmp"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"
	"golang.org/x/term"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/dev"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/internal/shell"
	"github.com/posthaste-dev/posthaste/outbox"
)

// devTerminal prints what happens: events as results, everything else beside them.
type devTerminal struct {
	mutex   sync.Mutex
	root    *rootCommand
	printer *present.Printer
	notes   *present.Printer
}

func (d *devTerminal) say(lines ...string) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	for _, line := range lines {
		_ = d.notes.Line(line) // nobody is left to tell
	}
}

func (d *devTerminal) done(text string) {
	d.say(d.notes.Paint(present.Good, "✓") + " " + clean.Line(text))
}

func (d *devTerminal) notice(notice dev.Notice) {
	mark := d.notes.Paint(present.Good, "✓")
	if notice.Bad {
		mark = d.notes.Paint(present.Bad, "✗")
	}
	d.say(d.notes.Paint(present.Faint, time.Now().Format("15:04:05.000")) + "  " + mark + " " + clean.Line(notice.Text))
}

// demoEvent is an event to try it with.
type demoEvent struct{ eventType, aggregate, data string }

// exampleEvent is one that the registry knows, whose names need no quotes. Without one every type is known.
func exampleEvent(registry *outbox.Registry) demoEvent {
	example := demoEvent{"order_created", "order", `{"total":12.5}`}
	if registry == nil || len(registry.Types()) == 0 {
		return example
	}
	contract, known := registry.Contract(example.eventType)
	if !known {
		contract, _ = registry.Contract(registry.Types()[0])
		example.data = "{}"
	}
	example.eventType, example.aggregate = contract.Type, contract.Aggregate
	return example
}

// ready says what to try next, in lines that can be copied.
func (d *devTerminal) ready(config *pgx.ConnConfig, page string, found, demo bool, types string, example demoEvent) {
	d.done("relay ready: events of " + types + " are delivered here")
	if page != "" {
		d.done("console: " + page)
	}
	emit := "outboxctl emit " + example.eventType + " --aggregate " + example.aggregate + "/1 --data '" + example.data +
		"'" + d.root.sameOutbox()
	function := "outbox_emit"
	if d.root.schema != "public" {
		function = pgx.Identifier{d.root.schema}.Sanitize() + "." + function
	}
	query := fmt.Sprintf("SELECT %s('%s', '%s', '1', '%s')", function, example.eventType, example.aggregate, example.data)
	psql := "psql " + shellQuoted(conninfo(config)) + " -c " + shellQuoted(query)
	lines := []string{"", "Emit an event, from another terminal:", "", "  " + emit, "  " + psql, ""}
	if demo {
		lines = append(lines, "The demo's shop emits; "+
			"invoice_requested fails, and the topic shipment is down for 20 s of every 40.", "")
	}
	if found {
		lines = append(lines, "For the other commands:  export DATABASE_URL="+shellQuoted(conninfo(config)), "")
	}
	d.say(append(lines, "Ctrl-C ends it.", "")...)
}

// sameOutbox are the flags with which another command has the same outbox.
func (c *rootCommand) sameOutbox() (flags string) {
	words := c.arguments()
	if c.schema != "public" {
		words = append([]string{"--schema", c.schema}, words...)
	}
	for _, word := range words {
		flags += " " + shellQuoted(word)
	}
	return flags
}

// conninfo names a database to PostgreSQL's clients, without a password.
func conninfo(config *pgx.ConnConfig) string {
	parts := []string{"host=" + config.Host, "port=" + strconv.Itoa(int(config.Port)), "user=" + config.User}
	parts = append(parts, "dbname="+cmp.Or(config.Database, config.User))
	if config.TLSConfig != nil && !config.TLSConfig.InsecureSkipVerify {
		parts = append(parts, "sslmode=verify-full")
	}
	for i, part := range parts {
		if name, value, _ := strings.Cut(part, "="); strings.ContainsAny(value, ` '\`) {
			parts[i] = name + "='" + strings.NewReplacer(`\`, `\\`, `'`, `\'`).Replace(value) + "'"
		}
	}
	return strings.Join(parts, " ")
}

// shellQuoted is one word of a shell, as a person would write it: SQL is read more easily in double quotes.
func shellQuoted(text string) string {
	text = clean.Line(text)
	if strings.ContainsAny(text, "'") && !strings.ContainsAny(text, "$`!\\") {
		return `"` + strings.ReplaceAll(text, `"`, `\"`) + `"`
	}
	return shell.Word(text)
}

// delivered prints one event.
func (d *devTerminal) delivered(event dev.Delivered) error {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.printer.Stream(event, func() string { return eventLine(d.printer, d.root.width(), event) })
}

// eventLine is one event in a line of the terminal, of which the data is cut to what is left of its width.
func eventLine(p *present.Printer, width int, event dev.Delivered) string {
	at, took := event.At.Format("15:04:05.000"), strconv.FormatFloat(event.LatencyMillis, 'f', 0, 64)+" ms"
	head := clean.Line(strings.Join([]string{at, event.Topic, event.Type, event.Aggregate}, "  "))
	left := width - utf8.RuneCountInString(head+"    "+took)
	data := clean.Line(string(event.Data))
	if width > 0 && utf8.RuneCountInString(data) > left {
		data = string([]rune(data)[:max(0, left-1)]) + "…"
	}
	return strings.Join([]string{
		p.Paint(present.Faint, at), p.Paint(present.Plain, event.Topic), p.Paint(present.Bold, event.Type),
		p.Paint(present.Plain, event.Aggregate), p.Paint(present.Plain, data), p.Paint(present.Faint, took),
	}, "  ")
}

// width is that of the terminal; 0: there is none, and nothing is cut.
func (c *rootCommand) width() int {
	if columns, err := strconv.Atoi(c.getenv("COLUMNS")); err == nil && columns > 0 {
		return columns
	}
	if terminal, ok := c.stdout.(*os.File); ok {
		if width, _, err := term.GetSize(int(terminal.Fd())); err == nil {
			return width
		}
	}
	return 0
}
