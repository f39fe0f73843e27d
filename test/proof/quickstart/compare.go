package quickstart

import (
	"fmt"
	"regexp"
	"strings"
)

// anything is a line of a page that stands for any number of lines.
const anything = "..."

// masks are what differs from run to run. Columns of tables are as wide as what is in them.
var masks = []struct {
	pattern *regexp.Regexp
	by      string
}{
	{regexp.MustCompile(`\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b`), "ID"},
	{regexp.MustCompile(`\b\d{4}-\d\d-\d\d[ T]\d\d:\d\d(:\d\d(\.\d+)?)?( ?[+-]\d\d(:?\d\d)?|Z)?`), "TIME"},
	{regexp.MustCompile(`\b\d\d:\d\d:\d\d(\.\d+)?Z?\b`), "TIME"},
	{regexp.MustCompile(`\b\d{4}/\d\d/\d\d\b`), "DATE"},
	{regexp.MustCompile(`\bPostgreSQL \d+[.\d]*`), "PostgreSQL VERSION"},
	{regexp.MustCompile(`\bv\d+\.\d+\.\d+[-.+\w]*`), "VERSION"},
	{regexp.MustCompile(`\bgo1\.\d+(\.\d+)?\b`), "VERSION"},
	{regexp.MustCompile(`\bat \S+, database \S+`), "at SERVER, database NAME"},
	{regexp.MustCompile(`\b127\.0\.0\.1:\d+`), "ADDRESS"},
	{regexp.MustCompile(`(^|\s)/\S*/`), "${1}FOLDER/"},
	{regexp.MustCompile(`\b\d+(\.\d+)? ?(ns|µs|ms|s|min|m|h)\b`), "DURATION"},
	{regexp.MustCompile(`─+|-{4,}`), "LINE"},
	{regexp.MustCompile(`\s+`), " "},
}

// killed is what bash says of a process that somebody has ended.
var killed = regexp.MustCompile(`: line \d+: +\d+ (?:Killed|Terminated) `)

// masked are the lines of a text that say something, without what differs from run to run.
func masked(text string) (all []string) {
	for line := range strings.Lines(text) {
		if killed.MatchString(line) {
			continue
		}
		line = strings.TrimSpace(line)
		for _, mask := range masks {
			line = mask.pattern.ReplaceAllString(line, mask.by)
		}
		if line != "" {
			all = append(all, line)
		}
	}
	return all
}

// Differs says what a page shows differently from what was printed; it is empty if nothing is. A line of three dots
// stands for any lines. Loosely, there may be more lines before, between and behind those of the page.
func Differs(page, printed string, loosely bool) string {
	want, got := masked(page), masked(printed)
	next, skip := 0, loosely
	for _, line := range want {
		if line == anything {
			skip = true
			continue
		}
		at := next
		for skip && at < len(got) && got[at] != line {
			at++
		}
		if at >= len(got) {
			return fmt.Sprintf("the page shows %q, which was not printed", line)
		}
		if got[at] != line {
			return fmt.Sprintf("the page shows %q, and printed was %q", line, got[at])
		}
		next, skip = at+1, loosely
	}
	if !skip && next < len(got) {
		return fmt.Sprintf("printed was %q, which the page does not show", got[next])
	}
	return ""
}
