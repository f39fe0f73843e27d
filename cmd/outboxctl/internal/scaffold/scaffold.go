// Package scaffold writes a Go module that emits, relays and consumes events.
package scaffold

import (
	"embed"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"text/template"
)

//go:embed template
var templates embed.FS

// Names are what the files of a module differ in.
type Names struct {
	// Module is the module's path, for instance example.com/shop.
	Module string
	// Posthaste and Pgx are the versions that it requires.
	Posthaste, Pgx string
}

// An ExistsError names the files that are in the way.
type ExistsError struct{ Files []string }

func (e *ExistsError) Error() string {
	return "these files are there already, and are left as they are: " + strings.Join(e.Files, ", ")
}

// Write writes the module's files into a folder and returns their names. Where one of them is there already it writes
// nothing.
func Write(folder string, names Names) (written []string, err error) {
	files, err := render(names)
	if err != nil {
		return nil, err
	}
	exists := &ExistsError{}
	for _, file := range files {
		if _, err := os.Lstat(filepath.Join(folder, file.name)); err == nil {
			exists.Files = append(exists.Files, file.name)
		} else if !errors.Is(err, fs.ErrNotExist) {
			return nil, fmt.Errorf("look at %s: %w", file.name, err)
		}
	}
	if len(exists.Files) > 0 {
		return nil, exists
	}
	for _, file := range files {
		name := filepath.Join(folder, file.name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil { //nolint:gosec // source code is for everybody
			return written, fmt.Errorf("write the module: %w", err)
		}
		if err := create(name, file.text); err != nil {
			return written, fmt.Errorf("write the module: %w", err)
		}
		written = append(written, file.name)
	}
	return written, nil
}

// create writes a file that is not there.
func create(name, text string) (err error) {
	file, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644) //nolint:gosec // as above
	if err != nil {
		return err //nolint:wrapcheck // it names the file
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	_, err = file.WriteString(text)
	return err //nolint:wrapcheck // it names the file
}

type rendered struct{ name, text string }

// render fills in the templates.
func render(names Names) (files []rendered, err error) {
	err = fs.WalkDir(templates, "template", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		parsed, err := template.ParseFS(templates, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		var text strings.Builder
		if err := parsed.ExecuteTemplate(&text, path.Base(name), names); err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		name = strings.TrimSuffix(strings.TrimPrefix(name, "template/"), ".tmpl")
		files = append(files, rendered{filepath.FromSlash(name), text.String()})
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("the module's templates: %w", err)
	}
	return files, nil
}
