package torture

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// logs is what the relays' logs say that must never be said.
type logs struct {
	panics, races, leaks int
	problems             []string
}

// mostQuoted is how many lines are quoted.
const mostQuoted = 20

// readLogs looks through the logs of all processes.
func readLogs(folder string) (logs, error) {
	var found logs
	files, err := filepath.Glob(logFile(folder, "*"))
	if err != nil {
		return found, fmt.Errorf("torture: %w", err)
	}
	for _, name := range files {
		if err := found.read(name); err != nil {
			return found, err
		}
	}
	return found, nil
}

func (l *logs) read(name string) error {
	file, err := os.Open(name)
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 16<<20)
	for lines.Scan() {
		line := lines.Text()
		switch {
		case strings.HasPrefix(line, "WARNING: DATA RACE"):
			l.races++
		case strings.HasPrefix(line, "panic:"), strings.HasPrefix(line, "fatal error:"), strings.Contains(line, "panicked"):
			l.panics++
		case strings.HasPrefix(line, leaked):
			l.leaks++
		default:
			continue
		}
		if len(l.problems) < mostQuoted {
			l.problems = append(l.problems, filepath.Base(name)+": "+line[:min(len(line), 1000)])
		}
	}
	if err := lines.Err(); err != nil {
		return fmt.Errorf("torture: %s: %w", filepath.Base(name), err)
	}
	return nil
}
