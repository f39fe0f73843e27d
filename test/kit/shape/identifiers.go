package shape

import (
	"go/ast"
	"go/token"
	"strings"

	"github.com/DataDog/go-sqllexer"
)

// kind is what an identifier names.
type kind int

const (
	variable kind = iota // a variable, constant, field, parameter or label, or a name in SQL
	unit                 // a package, a type or a function
	method               // a method
	sentence             // a test, whose name is a sentence
)

// identifier is a name that a file declares (Go) or has (SQL).
type identifier struct {
	name string
	line int
	kind kind
}

// declared are the names that a Go file declares: its package, types, functions, methods, fields, constants, variables,
// parameters, results, labels and imports under another name. A use is not counted: the name is wrong once.
func (r *Repository) declared(file *ast.File) []identifier {
	var all []identifier
	add := func(kind kind, names ...*ast.Ident) {
		for _, name := range names {
			if name != nil && name.Name != "_" && name.Name != "." {
				all = append(all, identifier{name.Name, r.line(name.Pos()), kind})
			}
		}
	}
	addAssigned := func(define token.Token, targets ...ast.Expr) {
		for _, target := range targets {
			if name, is := target.(*ast.Ident); is && define == token.DEFINE {
				add(variable, name)
			}
		}
	}
	ast.Inspect(file, func(node ast.Node) bool {
		switch n := node.(type) {
		case *ast.File:
			add(unit, n.Name)
		case *ast.ImportSpec:
			add(unit, n.Name)
		case *ast.FuncDecl:
			add(kindOf(n), n.Name)
		case *ast.TypeSpec:
			add(unit, n.Name)
		case *ast.ValueSpec:
			add(variable, n.Names...)
		case *ast.Field:
			add(variable, n.Names...)
		case *ast.LabeledStmt:
			add(variable, n.Label)
		case *ast.AssignStmt:
			addAssigned(n.Tok, n.Lhs...)
		case *ast.RangeStmt:
			addAssigned(n.Tok, n.Key, n.Value)
		}
		return true
	})
	return all
}

func kindOf(f *ast.FuncDecl) kind {
	switch name := f.Name.Name; {
	case f.Recv != nil:
		return method
	case strings.HasPrefix(name, "Test"), strings.HasPrefix(name, "Fuzz"), strings.HasPrefix(name, "Benchmark"):
		return sentence
	default:
		return unit
	}
}

// sqlIdentifiers are the names in a text of SQL: tables, columns, functions, variables and aliases, quoted or not. What
// dollars quote is a body, and its names count too. Comments, strings and keywords do not.
func sqlIdentifiers(text string, firstLine int) []identifier {
	var all []identifier
	lexer := sqllexer.New(text, sqllexer.WithDBMS(sqllexer.DBMSPostgres))
	line := firstLine
	for {
		token := lexer.Scan()
		value := token.Value
		switch token.Type {
		case sqllexer.EOF:
			return all
		case sqllexer.IDENT, sqllexer.QUOTED_IDENT, sqllexer.FUNCTION, sqllexer.BIND_PARAMETER:
			for part := range strings.FieldsFuncSeq(value, func(c rune) bool { return strings.ContainsRune(`."@: `, c) }) {
				all = append(all, identifier{part, line, variable})
			}
		case sqllexer.DOLLAR_QUOTED_FUNCTION, sqllexer.DOLLAR_QUOTED_STRING:
			mark := value[:strings.IndexByte(value[1:], '$')+2] // $$ or $name$
			all = append(all, sqlIdentifiers(strings.TrimSuffix(strings.TrimPrefix(value, mark), mark), line)...)
		default: // neither a name nor something that has names in it
		}
		line += strings.Count(value, "\n")
	}
}

// words takes an identifier apart: camelCase and snake_case, in lower case. Capitals that follow one another are one
// word, up to the capital that begins the next: HTTPServer is http and server.
func words(name string) []string {
	var all []string
	var word []rune
	end := func() {
		if len(word) > 0 {
			all = append(all, strings.ToLower(string(word)))
			word = word[:0]
		}
	}
	runes := []rune(name)
	for i, c := range runes {
		switch {
		case !isLetter(c):
			end()
			continue
		case isUpper(c) && i > 0 &&
			(!isUpper(runes[i-1]) || i+1 < len(runes) && isLetter(runes[i+1]) && !isUpper(runes[i+1])):
			end()
		}
		word = append(word, c)
	}
	end()
	return all
}
