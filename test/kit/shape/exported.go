package shape

import (
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

func isLetter(c rune) bool { return unicode.IsLetter(c) }
func isUpper(c rune) bool  { return unicode.IsUpper(c) }

// Exported is how much of a public package others can name.
type Exported struct {
	// Package is its folder.
	Package string
	// Names are constants, variables, types and functions; Members are methods and fields of exported types.
	Names, Members int
}

// exported counts the names of the packages that other modules can import.
func (r *Repository) exported() []Exported {
	counts := map[string]*Exported{}
	for _, s := range r.sources {
		if !s.isGo() || s.class != product || s.file.Name.Name == "main" || inside(s.path, "internal") {
			continue
		}
		count := counts[s.folder()]
		if count == nil {
			count = &Exported{Package: s.folder()}
			counts[s.folder()] = count
		}
		for _, declaration := range s.file.Decls {
			count.add(declaration)
		}
	}
	all := make([]Exported, 0, len(counts))
	for _, count := range counts {
		all = append(all, *count)
	}
	slices.SortFunc(all, func(a, b Exported) int { return strings.Compare(a.Package, b.Package) })
	return all
}

func (e *Exported) add(declaration ast.Decl) {
	switch d := declaration.(type) {
	case *ast.FuncDecl:
		switch {
		case !d.Name.IsExported():
		case d.Recv == nil:
			e.Names++
		case receiverIsExported(d.Recv):
			e.Members++
		}
	case *ast.GenDecl:
		for _, spec := range d.Specs {
			switch s := spec.(type) {
			case *ast.ValueSpec:
				e.Names += countExported(s.Names)
			case *ast.TypeSpec:
				if s.Name.IsExported() {
					e.Names++
					e.Members += members(s.Type)
				}
			}
		}
	}
}

func countExported(names []*ast.Ident) (n int) {
	for _, name := range names {
		if name.IsExported() {
			n++
		}
	}
	return n
}

// members counts the exported fields of a struct, or the methods of an interface.
func members(declared ast.Expr) (n int) {
	var fields *ast.FieldList
	switch t := declared.(type) {
	case *ast.StructType:
		fields = t.Fields
	case *ast.InterfaceType:
		fields = t.Methods
	default:
		return 0
	}
	for _, field := range fields.List {
		n += countExported(field.Names)
	}
	return n
}

func receiverIsExported(receiver *ast.FieldList) bool {
	for expression := receiver.List[0].Type; ; {
		switch e := expression.(type) {
		case *ast.StarExpr:
			expression = e.X
		case *ast.IndexExpr:
			expression = e.X
		case *ast.IndexListExpr:
			expression = e.X
		case *ast.Ident:
			return e.IsExported()
		default:
			return false
		}
	}
}
