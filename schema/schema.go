// Package schema holds the tables as numbered SQL migrations and applies them.
//
// The files are plain SQL with goose's annotations, and name no schema: they install into the first
// schema of search_path. [Set.Up] applies them with nothing but database/sql; goose takes [Set.Files]
// and shares the version table when it is told its name ([Set.VersionTable]); psql takes the part above
// "+goose Down".
//
// Every migration is one transaction together with its line in the version table, so an interrupted
// run leaves no half of one, and running it again goes on where it stopped. An advisory lock lets one
// migrator work at a time; whoever waits for it too long ([Options.MigratorTimeout]) is told who holds it. A lock that
// live traffic holds is waited for only briefly ([Options.LockTimeout]), because whoever waits for a table holds up all
// who come later.
package schema

import (
	"embed"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
)

//go:embed outbox/*.sql inbox/*.sql
var files embed.FS

// Outbox is what producers and relays need.
var Outbox = Set{Name: "outbox"}

// Inbox is what consumers need that remember in PostgreSQL what they have handled. It needs no outbox beside it,
// and may share a schema with one.
var Inbox = Set{Name: "inbox"}

// A Set is a numbered list of migrations that is applied as a whole. The zero value has no files; use
// the package's variables.
type Set struct {
	// Name is the set's folder and the prefix of its tables.
	Name string
}

// A Migration is one step.
type Migration struct {
	Version int64
	Name    string // the file's name without number and ending
	Up      string
	Down    string
}

// VersionTable is the table that remembers what was applied, in goose's form.
func (s Set) VersionTable() string { return s.Name + "_schema_version" }

// Files returns the migrations as goose and other tools read them.
func (s Set) Files() fs.FS {
	sub, err := fs.Sub(files, s.Name)
	if err != nil {
		return embed.FS{}
	}
	return sub
}

// Migrations returns the steps in order.
func (s Set) Migrations() ([]Migration, error) {
	names, err := fs.Glob(s.Files(), "*.sql")
	if err != nil || len(names) == 0 {
		return nil, fmt.Errorf("schema: there is no set of migrations called %q", s.Name)
	}
	migrations := make([]Migration, len(names))
	for i, name := range names {
		if migrations[i], err = s.read(name); err != nil {
			return nil, err
		}
	}
	return migrations, nil
}

// read splits a file at its annotations. The annotations are comments, so each half is sent as it is.
func (s Set) read(name string) (Migration, error) {
	text, err := fs.ReadFile(s.Files(), name)
	if err != nil {
		return Migration{}, fmt.Errorf("schema: %w", err)
	}
	number, title, _ := strings.Cut(strings.TrimSuffix(path.Base(name), ".sql"), "_")
	version, err := strconv.ParseInt(number, 10, 64)
	if err != nil {
		return Migration{}, fmt.Errorf("schema: %s does not begin with a number", name)
	}
	_, body, hasUp := strings.Cut(string(text), "-- +goose Up\n")
	up, down, hasDown := strings.Cut(body, "-- +goose Down\n")
	if !hasUp || !hasDown {
		return Migration{}, fmt.Errorf("schema: %s needs the lines '-- +goose Up' and '-- +goose Down'", name)
	}
	return Migration{Version: version, Name: title, Up: up, Down: down}, nil
}
