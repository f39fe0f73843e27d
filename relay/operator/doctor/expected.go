package doctor

import (
	"regexp"
	"strings"

	"github.com/posthaste-dev/posthaste/schema"
)

// expected is what the migrations make, by their own text: there is no other list.
type expected struct {
	newest                   int64
	tables, views, functions []string
	triggers, indexes        []made
	// settings are those of tables, by table and name.
	settings map[string]map[string]string
}

// made is an object that stands on a table, and the statement that makes it.
type made struct{ name, table, statement string }

var (
	createTable    = regexp.MustCompile(`(?m)^CREATE TABLE (\w+)`)
	createView     = regexp.MustCompile(`(?m)^CREATE VIEW (\w+)`)
	createFunction = regexp.MustCompile(`(?m)^CREATE (?:OR REPLACE )?FUNCTION (\w+)`)
	createTrigger  = regexp.MustCompile(`(?m)^CREATE (?:CONSTRAINT )?TRIGGER (\w+)[^;]*?\bON (\w+)[^;]*;`)
	createIndex    = regexp.MustCompile(`(?m)^CREATE (?:UNIQUE )?INDEX (\w+) ON (\w+)[^;]*;`)
	tableSettings  = regexp.MustCompile(`(?s)CREATE TABLE (\w+) \((?:[^;]*?)\n\) WITH \(([^;]*?)\);`)
	changeSettings = regexp.MustCompile(`ALTER TABLE (\w+) SET \(([^;]*?)\);`)
	dropped        = regexp.MustCompile(`(?m)^DROP (?:TABLE|VIEW|FUNCTION|INDEX|TRIGGER) (?:IF EXISTS )?(\w+)`)
	comment        = regexp.MustCompile(`(?m)--.*$`)
)

// readExpected reads the migrations.
func readExpected() (expected, error) {
	migrations, err := schema.Outbox.Migrations()
	if err != nil {
		return expected{}, err
	}
	e := expected{settings: map[string]map[string]string{}}
	for _, migration := range migrations {
		e.newest = migration.Version
		text := comment.ReplaceAllString(migration.Up, "")
		for _, gone := range dropped.FindAllStringSubmatch(text, -1) {
			e.drop(gone[1])
		}
		e.tables = append(e.tables, first(createTable, text)...)
		e.views = append(e.views, first(createView, text)...)
		e.functions = append(e.functions, first(createFunction, text)...)
		for _, found := range createTrigger.FindAllStringSubmatch(text, -1) {
			e.triggers = append(e.triggers, made{found[1], found[2], found[0]})
		}
		for _, found := range createIndex.FindAllStringSubmatch(text, -1) {
			e.indexes = append(e.indexes, made{found[1], found[2], found[0]})
		}
		for _, pattern := range []*regexp.Regexp{tableSettings, changeSettings} {
			for _, found := range pattern.FindAllStringSubmatch(text, -1) {
				e.set(found[1], found[2])
			}
		}
	}
	return e, nil
}

func first(pattern *regexp.Regexp, text string) (names []string) {
	for _, found := range pattern.FindAllStringSubmatch(text, -1) {
		names = append(names, found[1])
	}
	return names
}

func (e *expected) set(table, list string) {
	if e.settings[table] == nil {
		e.settings[table] = map[string]string{}
	}
	for setting := range strings.SplitSeq(list, ",") {
		name, value, _ := strings.Cut(setting, "=")
		e.settings[table][strings.TrimSpace(name)] = strings.TrimSpace(value)
	}
}

// drop takes away what a later migration does not want any more. It may make it again.
func (e *expected) drop(name string) {
	without := func(names []string) (kept []string) {
		for _, other := range names {
			if other != name {
				kept = append(kept, other)
			}
		}
		return kept
	}
	withoutMade := func(all []made) (kept []made) {
		for _, other := range all {
			if other.name != name && other.table != name {
				kept = append(kept, other)
			}
		}
		return kept
	}
	e.tables, e.views, e.functions = without(e.tables), without(e.views), without(e.functions)
	e.triggers, e.indexes = withoutMade(e.triggers), withoutMade(e.indexes)
}

var (
	// named is what a statement names of ours: the table, the function, and what its condition asks.
	named  = regexp.MustCompile(`\b(ON|EXECUTE FUNCTION|WHEN \(NOT) (outbox_\w+)`)
	spaces = regexp.MustCompile(`\s+`)
)

// qualified is the statement that makes it, for whichever search_path.
func (m made) qualified(name func(string) string) string {
	statement := named.ReplaceAllStringFunc(m.statement, func(piece string) string {
		ours := strings.LastIndex(piece, " ") + 1
		return piece[:ours] + name(piece[ours:])
	})
	return strings.TrimSuffix(strings.TrimSpace(spaces.ReplaceAllString(statement, " ")), ";")
}
