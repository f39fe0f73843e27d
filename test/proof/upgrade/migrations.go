package upgrade

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// Migrations is what two trees have of a set of migrations.
type Migrations struct {
	// Old and New are the newest versions of the two.
	Old, New int
	// Shared is the version up to which both have the same steps, by their names.
	Shared int
	// Changed are the steps up to Shared that are another text now, and Gone those of the old tree that the new one does
	// not have. A released migration never changes, so of a release there are none.
	Changed, Gone []string
}

// Kept tells whether the old tree's migrations are the beginning of the new one's.
func (m Migrations) Kept() bool { return len(m.Changed) == 0 && len(m.Gone) == 0 }

// Compare compares the migrations of a set, outbox or inbox, of two trees.
func Compare(oldTree, newTree, set string) (Migrations, error) {
	var m Migrations
	before, err := readMigrations(filepath.Join(oldTree, "schema", set))
	if err != nil {
		return m, err
	}
	now, err := readMigrations(filepath.Join(newTree, "schema", set))
	if err != nil {
		return m, err
	}
	m.Old, m.New = before[len(before)-1].version, now[len(now)-1].version
	for i, step := range before {
		switch {
		case len(m.Gone) > 0 || i >= len(now) || now[i].name != step.name:
			m.Gone = append(m.Gone, step.name)
			continue
		case !bytes.Equal(now[i].text, step.text):
			m.Changed = append(m.Changed, step.name)
		}
		m.Shared = step.version
	}
	if m.Shared == 0 {
		return m, fmt.Errorf("upgrade: %s and the working tree have no migration of the %s in common", oldTree, set)
	}
	return m, nil
}

// step is one migration.
type step struct {
	version int
	name    string
	text    []byte
}

// readMigrations reads a folder; by their names they are in order.
func readMigrations(folder string) ([]step, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*.sql"))
	if err != nil || len(files) == 0 {
		return nil, fmt.Errorf("upgrade: there is no migration in %s", folder)
	}
	steps := make([]step, len(files))
	for i, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".sql")
		number, _, _ := strings.Cut(name, "_")
		version, err := strconv.Atoi(number)
		if err != nil {
			return nil, fmt.Errorf("upgrade: %s begins with no number: %w", file, err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("upgrade: %w", err)
		}
		steps[i] = step{version, name, text}
	}
	return steps, nil
}
