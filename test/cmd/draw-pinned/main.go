// Command draw-pinned draws the figures of `make bench-pinned` that docs/internals/benchmarks.md keeps: how much a
// relay delivers while somebody holds a snapshot or leaves a transaction open, and what it would deliver if it read
// from the beginning. No number in the picture comes from anywhere else.
//
//	go run ./test/cmd/draw-pinned -page docs/internals/benchmarks.md -into docs/pictures/pinned.svg
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"html"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/posthaste-dev/posthaste/test/kit/command"
)

func main() { os.Exit(command.Main("draw-pinned", draw)) }

func draw(_ context.Context, args []string) (ok bool, err error) {
	flags := flag.NewFlagSet("draw-pinned", flag.ContinueOnError)
	page := flags.String("page", "docs/internals/benchmarks.md", "the page with the figures")
	into := flags.String("into", "docs/pictures/pinned.svg", "the picture")
	if err := flags.Parse(args); err != nil {
		return false, err
	}
	text, err := os.ReadFile(*page)
	if err != nil {
		return false, err
	}
	run, err := read(string(text))
	if err != nil {
		return false, err
	}
	if err := os.WriteFile(*into, []byte(run.picture()), 0o644); err != nil {
		return false, err
	}
	fmt.Printf("draw-pinned bars=%d ok=true\n", len(run.bars))
	return true, nil
}

// A bar is one phase of the run.
type bar struct {
	label  string
	rate   int    // events acknowledged per second, in the last third
	median string // from commit to acknowledgement
	wrong  bool   // without the watermark
}

// A pinnedRun is what one run of bench-pinned has printed.
type pinnedRun struct {
	offered, dead int
	bars          []bar
}

// labels are the phases, in their order.
var labels = []struct{ phase, label string }{
	{"unpinned", "nothing held"},
	{"snapshot", "a snapshot held"},
	{"snapshot_control", "the same, read from the beginning"},
	{"writer", "a transaction left open"},
	{"writer_control", "the same, read from the beginning"},
}

var (
	headPattern   = regexp.MustCompile(`(?m)^(\d+) events/s in transactions of \d+, (\d+) dead tuples made under every`)
	columnPattern = regexp.MustCompile(` {2,}`)
)

// read finds the figures in a page.
func read(text string) (*pinnedRun, error) {
	head := headPattern.FindStringSubmatchIndex(text)
	if head == nil {
		return nil, errors.New("the page has no figures of bench-pinned")
	}
	run := &pinnedRun{}
	run.offered, _ = strconv.Atoi(text[head[2]:head[3]]) // digits alone
	run.dead, _ = strconv.Atoi(text[head[4]:head[5]])
	_, table, _ := strings.Cut(text[head[1]:], "\n")
	table, _, _ = strings.Cut(table, "```")
	rows := map[string][]string{}
	for line := range strings.Lines(table) {
		cells := columnPattern.Split(strings.TrimSpace(line), -1)
		rows[cells[0]] = cells
	}
	if columns := rows["phase"]; len(columns) < 5 || columns[2] != "acknowledged, by third" || columns[4] != "p50" {
		return nil, errors.New("the table of bench-pinned has other columns")
	}
	for _, l := range labels {
		cells := rows[l.phase]
		if len(cells) < 5 {
			return nil, fmt.Errorf("the table of bench-pinned has no phase %s", l.phase)
		}
		thirds := strings.Fields(cells[2])
		rate, err := strconv.Atoi(thirds[len(thirds)-1])
		if err != nil {
			return nil, fmt.Errorf("phase %s: %w", l.phase, err)
		}
		median, err := strconv.ParseFloat(strings.TrimSuffix(cells[4], " ms"), 64)
		if err != nil {
			return nil, fmt.Errorf("phase %s: %w", l.phase, err)
		}
		run.bars = append(run.bars, bar{
			label: l.label, rate: rate, median: duration(median), wrong: strings.HasSuffix(l.phase, "_control"),
		})
	}
	return run, nil
}

// duration is a time in milliseconds as people read it.
func duration(milliseconds float64) string {
	if milliseconds >= 1000 {
		return strconv.FormatFloat(milliseconds/1000, 'f', 1, 64) + " s"
	}
	return strconv.FormatFloat(milliseconds, 'f', 1, 64) + " ms"
}

// thousands writes a number with commas.
func thousands(n int) string {
	text := strconv.Itoa(n)
	for at := len(text) - 3; at > 0; at -= 3 {
		text = text[:at] + "," + text[at:]
	}
	return text
}

// Places in the picture.
const (
	width     = 720
	labelEnd  = 300
	barsBegin = 312
	longest   = 240
	firstRow  = 92
	rowHeight = 34
	barHeight = 20
)

const style = `<style>
text{font:15px system-ui,-apple-system,"Segoe UI",Roboto,"DejaVu Sans",sans-serif;fill:#1f2328}
.title{font-weight:600}.row{font-size:14px}.small{font-size:13px;fill:#59636e}.end{text-anchor:end}
.ours{fill:#1a7f5a}.wrong{fill:#c2410c}.paper{fill:#fff;stroke:#d1d9e0}
@media (prefers-color-scheme:dark){text{fill:#f0f6fc}.small{fill:#9198a1}
.ours{fill:#3fb68b}.wrong{fill:#f0883e}.paper{fill:#0d1117;stroke:#3d444d}}
</style>
`

// picture draws the bars.
func (r *pinnedRun) picture() string {
	var svg strings.Builder
	height := firstRow + len(r.bars)*rowHeight + 28
	title := fmt.Sprintf("Delivered per second, of %s events offered", thousands(r.offered))
	fmt.Fprintf(&svg, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%[1]d" height="%[2]d" `+
		`role="img" aria-label="%[3]s">`+"\n%s", width, height, title, style)
	fmt.Fprintf(&svg, `<rect class="paper" x=".5" y=".5" width="%d" height="%d" rx="8"/>`+"\n", width-1, height-1)
	text := func(class string, x, y int, words string) {
		fmt.Fprintf(&svg, `<text class="%s" x="%d" y="%d">%s</text>`+"\n", class, x, y, html.EscapeString(words))
	}
	text("title", 18, 30, title)
	text("small", 18, 52, fmt.Sprintf("in the last third of a minute; what is held keeps %s dead rows in the table;",
		thousands(r.dead)))
	text("small", 18, 70, "and the median time from commit to acknowledgement")
	for i, b := range r.bars {
		y, class := firstRow+i*rowHeight, "ours"
		if b.wrong {
			class = "wrong"
		}
		text("row end", labelEnd, y+15, b.label)
		long := max(2, b.rate*longest/r.offered)
		fmt.Fprintf(&svg, `<rect class="%s" x="%d" y="%d" width="%d" height="%d" rx="3"/>`+"\n", class, barsBegin, y, long,
			barHeight)
		text("row", barsBegin+long+10, y+15, fmt.Sprintf("%s/s, %s", thousands(b.rate), b.median))
	}
	text("small", 18, height-14, "one relay, two cores, PostgreSQL 18, printed by make bench-pinned")
	svg.WriteString("</svg>\n")
	return svg.String()
}
