package shape

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
)

// language is what a file is written in.
type language int

const (
	goLanguage language = iota + 1
	sqlLanguage
	luaLanguage
	shellLanguage
)

// source is a file of the repository that is measured.
type source struct {
	path     string // from the root, with slashes
	class    class
	language language
	lines    []string
	file     *ast.File // of Go
	text     string
}

// folder is the package's folder from the root.
func (s *source) folder() string { return path.Dir(s.path) }

// isGo tells whether the file is one of Go, and parsed.
func (s *source) isGo() bool { return s.language == goLanguage }

// Repository is a tree of files that has been read.
type Repository struct {
	root      string
	positions *token.FileSet
	sources   []*source
	// modules are the folders that have a go.mod, from the root.
	modules []string
	// excluded counts what is not measured, by the reason.
	excluded map[string]int
}

// Reasons for which a file, or a line, is not measured.
const (
	inTestdata = "files in testdata, which tests read as they are"
	generated  = "generated files, which people do not change"
	fieldTags  = "lines with the tag of a field, which is one literal by the language"
)

// Read reads the tree under root.
func Read(root string) (*Repository, error) {
	r := &Repository{root: root, positions: token.NewFileSet(), excluded: map[string]int{}}
	err := filepath.WalkDir(root, func(name string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		relative = filepath.ToSlash(relative)
		switch {
		case entry.IsDir() && notOurs(relative):
			return filepath.SkipDir
		case entry.IsDir() || !entry.Type().IsRegular():
			return nil
		case entry.Name() == "go.mod" && !inside(relative, "testdata"):
			r.modules = append(r.modules, path.Dir(relative))
			return nil
		}
		return r.add(relative)
	})
	if err != nil {
		return nil, fmt.Errorf("shape: %w", err)
	}
	return r, nil
}

// notOurs are folders of which git or a build is the owner.
func notOurs(folder string) bool {
	switch name := path.Base(folder); {
	case folder == ".", folder == ".ci":
		return false
	case strings.HasPrefix(name, "."):
		return true
	default:
		return name == "node_modules" || name == "target" || folder == "bin"
	}
}

// inside tells whether one of the folders of a path has this name.
func inside(name, folder string) bool { return strings.Contains("/"+name, "/"+folder+"/") }

func (r *Repository) add(name string) error {
	text, err := os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
	if err != nil {
		return err
	}
	s := &source{path: name, class: classOf(name), language: languageOf(name, text), text: string(text)}
	if s.language == 0 {
		return nil
	}
	if inside(name, "testdata") {
		r.excluded[inTestdata]++
		return nil
	}
	s.lines = strings.Split(strings.TrimSuffix(s.text, "\n"), "\n")
	if s.isGo() {
		s.file, err = parser.ParseFile(r.positions, name, text, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		if ast.IsGenerated(s.file) {
			r.excluded[generated]++
			return nil
		}
	}
	r.sources = append(r.sources, s)
	return nil
}

func languageOf(name string, text []byte) language {
	switch path.Ext(name) {
	case ".go":
		return goLanguage
	case ".sql":
		return sqlLanguage
	case ".lua":
		return luaLanguage
	case ".sh":
		return shellLanguage
	case "":
		first, _, _ := bytes.Cut(text[:min(len(text), 64)], []byte("\n"))
		if bytes.HasPrefix(first, []byte("#!")) && bytes.HasSuffix(bytes.TrimSpace(first), []byte("sh")) {
			return shellLanguage
		}
	}
	return 0
}

// line is the line at which a node of Go begins.
func (r *Repository) line(position token.Pos) int { return r.positions.Position(position).Line }
