package quickstart

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
)

// Page is the quick start of README: what is typed, and what is shown.
type Page struct {
	// Install installs the command. Stays runs in one terminal until it is stopped, and the others in a second one.
	Install string
	Stays   string
	Others  []string
	// Shown is what Stays is said to show. Its last line is the event.
	Shown string
}

var blockPattern = regexp.MustCompile("(?ms)^```(\\w*)\n(.*?)^```$")

// ReadPage takes the section of a page apart.
func ReadPage(text, section string) (*Page, error) {
	_, rest, found := strings.Cut(text, "\n## "+section+"\n")
	if !found {
		return nil, fmt.Errorf("quickstart: the page has no section %q", section)
	}
	rest, _, _ = strings.Cut(rest, "\n## ")
	var commands, shown []string
	page := &Page{}
	for _, block := range blockPattern.FindAllStringSubmatch(rest, -1) {
		switch block[1] {
		case "sh":
			commands = append(commands, lines(block[2])...)
		case "text":
			shown = append(shown, strings.TrimSpace(block[2]))
		}
	}
	page.Shown = strings.Join(shown, "\n")
	if len(commands) < 3 || page.Shown == "" {
		return nil, errors.New("quickstart: the section does not install something, run it, use it, and show what is seen")
	}
	page.Install, page.Stays, page.Others = commands[0], commands[1], commands[2:]
	return page, nil
}

// lines are those of a block that do something.
func lines(block string) (all []string) {
	for line := range strings.Lines(block) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			all = append(all, line)
		}
	}
	return all
}

var (
	timePattern     = regexp.MustCompile(`\d\d:\d\d:\d\d\\\.\d{3}`)
	durationPattern = regexp.MustCompile(`\d+( ?ms)`)
	versionPattern  = regexp.MustCompile(`PostgreSQL \d+\\\.\d+`)
	databasePattern = regexp.MustCompile(`at \S+, database \S+`)
)

// Expected are the lines that the page shows, as expressions in which times, durations and the name of the database
// may be others. The last is the event.
func (p *Page) Expected() (all []*regexp.Regexp, err error) {
	for _, line := range lines(p.Shown) {
		if line == anything {
			continue
		}
		line = regexp.QuoteMeta(line)
		line = timePattern.ReplaceAllString(line, `\d\d:\d\d:\d\d\.\d{3}`)
		line = durationPattern.ReplaceAllString(line, `[\d.]+( ?m?s)`)
		line = versionPattern.ReplaceAllString(line, `PostgreSQL \d+[.\d]*`)
		line = databasePattern.ReplaceAllString(line, `at \S+, database \S+`)
		pattern, err := regexp.Compile("(?m)^" + line + "$")
		if err != nil {
			return nil, fmt.Errorf("quickstart: %w", err)
		}
		all = append(all, pattern)
	}
	return all, nil
}
