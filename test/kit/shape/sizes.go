package shape

import (
	"fmt"
	"go/ast"
	"go/token"
	"unicode/utf8"
)

// What is too long. A column is a character; a tab is one column, as golangci-lint's lll counts it.
const (
	maxFileLines     = 600
	maxFunctionLines = 100
	maxColumns       = 120
	maxMethods       = 5
)

// function is a function or method with its length, from the line of func to that of its last brace.
type function struct {
	file        string
	name        string
	line, lines int
}

// functions are those of all Go files.
func (r *Repository) functions() []function {
	var all []function
	for _, s := range r.sources {
		if !s.isGo() {
			continue
		}
		for _, declaration := range s.file.Decls {
			if f, is := declaration.(*ast.FuncDecl); is {
				all = append(all, r.function(s.path, f.Name.Name, f.Type.Func, f.End()))
				continue
			}
			ast.Inspect(declaration, func(node ast.Node) bool {
				f, is := node.(*ast.FuncLit)
				if is {
					all = append(all, r.function(s.path, "a function without a name", f.Type.Func, f.End()))
				}
				return !is
			})
		}
	}
	return all
}

func (r *Repository) function(path, name string, from, to token.Pos) function {
	first, last := r.line(from), r.line(to-1)
	return function{path, name, first, last - first + 1}
}

func (r *Repository) longFunctions() (findings []Finding) {
	for _, f := range r.functions() {
		if f.lines > maxFunctionLines {
			text := fmt.Sprintf("%s has %d lines, %d at most", f.name, f.lines, maxFunctionLines)
			findings = append(findings, Finding{f.file, f.line, text})
		}
	}
	return findings
}

func (r *Repository) longFiles() (findings []Finding) {
	for _, s := range r.sources {
		if len(s.lines) > maxFileLines && s.isGo() {
			text := fmt.Sprintf("%d lines, %d at most", len(s.lines), maxFileLines)
			findings = append(findings, Finding{s.path, 0, text})
		}
	}
	return findings
}

func (r *Repository) longLines() (findings []Finding) {
	for _, s := range r.sources {
		tags := r.tagged(s)
		for i, line := range s.lines {
			if columns := utf8.RuneCountInString(line); columns > maxColumns && !tags[i+1] {
				text := fmt.Sprintf("%d columns, %d at most", columns, maxColumns)
				findings = append(findings, Finding{s.path, i + 1, text})
			}
		}
	}
	return findings
}

// tagged are the lines that end with the tag of a field. A tag is one literal by the language, so it cannot be broken.
func (r *Repository) tagged(s *source) map[int]bool {
	lines := map[int]bool{}
	if !s.isGo() {
		return lines
	}
	ast.Inspect(s.file, func(node ast.Node) bool {
		field, is := node.(*ast.Field)
		if !is || field.Tag == nil {
			return true
		}
		line := r.line(field.Tag.Pos())
		if utf8.RuneCountInString(s.lines[line-1]) > maxColumns {
			lines[line] = true
			r.excluded[fieldTags]++
		}
		return true
	})
	return lines
}
