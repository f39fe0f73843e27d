// Package coverage counts the statements that tests have run, per package, and compares two such counts. The command
// `make coverage` prints it.
package coverage

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"maps"
	"path"
	"slices"
	"strings"
)

// Count is how many statements there are, and how many of them were run.
type Count struct{ Statements, Covered int }

// Percent is how many of a hundred statements were run. All of none are.
func (c Count) Percent() float64 {
	if c.Statements == 0 {
		return 100
	}
	return 100 * float64(c.Covered) / float64(c.Statements)
}

func (c Count) plus(d Count) Count { return Count{c.Statements + d.Statements, c.Covered + d.Covered} }

// Table has a count for each package, by its folder.
type Table map[string]Count

// Profile counts what `go test -coverprofile` wrote. A block is there once per test binary, and was run if one of them
// ran it. Packages whose path does not begin with the prefix, or that are not wanted, are left out.
func Profile(from io.Reader, prefix string, wanted func(folder string) bool) (Table, error) {
	type block struct{ statements, runs int }
	blocks := map[string]block{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		if strings.HasPrefix(line, "mode: ") {
			continue
		}
		var b block
		at := strings.IndexByte(line, ' ')
		if at < 0 {
			return nil, fmt.Errorf("coverage: %q is no line of a profile", line)
		}
		if _, err := fmt.Sscanf(line[at:], "%d %d", &b.statements, &b.runs); err != nil {
			return nil, fmt.Errorf("coverage: %q is no line of a profile: %w", line, err)
		}
		b.runs += blocks[line[:at]].runs
		blocks[line[:at]] = b
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("coverage: %w", err)
	}
	table := Table{}
	for name, b := range blocks {
		file, _, _ := strings.Cut(name, ":")
		folder, ours := strings.CutPrefix(path.Dir(file), prefix)
		if folder = path.Clean(strings.TrimPrefix(folder, "/")); !ours || !wanted(folder) {
			continue
		}
		count := Count{Statements: b.statements}
		if b.runs > 0 {
			count.Covered = b.statements
		}
		table[folder] = table[folder].plus(count)
	}
	return table, nil
}

// Total is the sum of all packages.
func (t Table) Total() (total Count) {
	for _, count := range t {
		total = total.plus(count)
	}
	return total
}

const header = "package statements covered percent"

// Write writes the table, to be read again by [Read].
func (t Table) Write(to io.Writer) error {
	names := slices.Sorted(maps.Keys(t))
	width := len("package")
	for _, name := range names {
		width = max(width, len(name))
	}
	words := strings.Fields(header)
	_, err := fmt.Fprintf(to, "%-*s %10s %8s %8s\n", width, words[0], words[1], words[2], words[3])
	for _, name := range names {
		if count := t[name]; err == nil {
			_, err = fmt.Fprintf(to, "%-*s %10d %8d %7.2f%%\n", width, name, count.Statements, count.Covered, count.Percent())
		}
	}
	return err
}

// Read reads what Write wrote.
func Read(from io.Reader) (Table, error) {
	table := Table{}
	lines := bufio.NewScanner(from)
	for lines.Scan() {
		line := lines.Text()
		if strings.Join(strings.Fields(line), " ") == header {
			continue
		}
		var name string
		var count Count
		if _, err := fmt.Sscan(line, &name, &count.Statements, &count.Covered); err != nil {
			return nil, fmt.Errorf("coverage: %q is no line of a table: %w", line, err)
		}
		table[name] = count
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("coverage: %w", err)
	}
	if len(table) == 0 {
		return nil, errors.New("coverage: the table is empty")
	}
	return table, nil
}
