package mutants

import (
	"encoding/json"
	"fmt"
	"go/ast"
	"go/format"
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// loaders are where packages load their texts, which are statements mostly. A text is changed when it is loaded, so
// that one build has all mutants of it.
func loaders() []change {
	return []change{
		{"outbox/statement.go", "string(text)", "mutantText(name, string(text))"},
		{"inbox/conn.go", "string(text)", "mutantText(name, string(text))"},
		{"inbox/redisinbox/script.go", "redis.NewScript(putText)", `redis.NewScript(mutantText("put", putText))`},
		{"inbox/redisinbox/script.go", "redis.NewScript(removeText)", `redis.NewScript(mutantText("remove", removeText))`},
		{storeTests + "/store.go", "string(text)", "mutantText(file, string(text))"},
		{"schema/schema.go", "string(text)", "mutantText(name, string(text))"},
		{operatorTests + "/look.go", "string(text)", "mutantText(name, string(text))"},
		{auditTests + "/audit.go", "string(text)", "mutantText(name, string(text))"},
		{"relay/retention/retention.go", "string(text)", "mutantText(file, string(text))"},
		{minuteTests + "/write.go", "w.Schema, writeSQL", `w.Schema, mutantText("write", writeSQL)`},
		{minuteTests + "/write.go", "w.Schema, forgetSQL", `w.Schema, mutantText("forget", forgetSQL)`},
	}
}

// overlay has the changed files of all mutants, by their path from the root. In a Go file every function that a
// mutant changes is there once more for that mutant, and the right one begins with a switch. So one build has all
// mutants in it, and behaves as the product does while none is chosen.
func overlay(root string, mutants []mutant, loaders []change) (map[string]string, error) {
	files, texts := map[string][]wrong{}, map[string][]wrong{}
	for _, m := range mutants {
		for _, c := range m.changes {
			if strings.HasSuffix(c.file, ".go") {
				files[c.file] = append(files[c.file], wrong{m.name, c})
				continue
			}
			text, err := os.ReadFile(filepath.Join(root, c.file))
			if err == nil {
				_, err = c.position(string(text))
			}
			if err != nil {
				return nil, fmt.Errorf("mutants: %s: %w", m.name, err)
			}
			texts[c.owner()] = append(texts[c.owner()], wrong{m.name, c})
		}
	}
	if err := addLoaders(files, texts, loaders); err != nil {
		return nil, err
	}
	changed, packages := map[string]string{}, map[string]string{}
	for file, all := range files {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			return nil, fmt.Errorf("mutants: %s: %w", all[0].mutant, err)
		}
		changed[file], packages[filepath.Dir(file)], err = withSwitches(string(text), all)
		if err != nil {
			return nil, fmt.Errorf("mutants: %s: %w", file, err)
		}
	}
	for folder, name := range packages {
		changed[filepath.Join(folder, "mutant_chosen.go")] = choice(name, texts[folder])
	}
	return changed, nil
}

// addLoaders adds the changes of how texts are loaded, where there are texts to change.
func addLoaders(files, texts map[string][]wrong, loaders []change) error {
	for owner, all := range texts {
		loaded := false
		for _, l := range loaders {
			if filepath.Dir(l.file) == owner {
				files[l.file], loaded = append(files[l.file], wrong{"", l}), true
			}
		}
		if !loaded {
			return fmt.Errorf("mutants: %s: nothing is known to load the texts of %s", all[0].mutant, owner)
		}
	}
	return nil
}

// writeOverlay puts the changed files into a folder, with the list of them that the go command takes.
func writeOverlay(root, folder string, changed map[string]string) (list string, err error) {
	replace := map[string]string{}
	for file, text := range changed {
		at := filepath.Join(folder, strings.ReplaceAll(file, string(filepath.Separator), "_"))
		if err := os.WriteFile(at, []byte(text), 0o600); err != nil {
			return "", fmt.Errorf("mutants: %w", err)
		}
		replace[filepath.Join(root, file)] = at
	}
	text, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", fmt.Errorf("mutants: %w", err)
	}
	list = filepath.Join(folder, "overlay.json")
	if err := os.WriteFile(list, text, 0o600); err != nil {
		return "", fmt.Errorf("mutants: %w", err)
	}
	return list, nil
}

// wrong is one change of one mutant; without a mutant it is how a text is loaded, which all mutants have.
type wrong struct {
	mutant string
	change change
}

// position is where the text to change begins. It must be there once: elsewhere it could be another thing by now.
func (c *change) position(text string) (int, error) {
	if n := strings.Count(text, c.from); n != 1 || c.from == "" || c.from == c.to {
		return 0, fmt.Errorf("%s says %q %d times, and must once and be changed", c.file, c.from, n)
	}
	return strings.Index(text, c.from), nil
}

// owner is the package that loads a text: texts lie in it, or in a folder inside it.
func (c *change) owner() string {
	folder := filepath.Dir(c.file)
	switch filepath.Base(folder) {
	case "sql", "outbox", "inbox":
		return filepath.Dir(folder)
	}
	return folder
}

// edit is a replacement of a part of a file.
type edit struct {
	from, to int
	text     string
}

// withSwitches is a Go file in which each change is made in a copy of its function, and every such function begins
// with a switch to its copies. It also returns the name of the package.
func withSwitches(text string, changes []wrong) (changed, name string, err error) {
	set := token.NewFileSet()
	file, err := parser.ParseFile(set, "", text, parser.ParseComments|parser.SkipObjectResolution)
	if err != nil {
		return "", "", err
	}
	offset := func(p token.Pos) int { return set.Position(p).Offset }
	var ofAll []edit
	copies := map[*ast.FuncDecl]map[string][]edit{} // by mutant: what it changes
	for _, w := range changes {
		at, err := w.change.position(text)
		if err != nil {
			return "", "", fmt.Errorf("%s: %w", w.mutant, err)
		}
		made := edit{at, at + len(w.change.from), w.change.to}
		if w.mutant == "" {
			ofAll = append(ofAll, made)
			continue
		}
		index := slices.IndexFunc(file.Decls, func(d ast.Decl) bool {
			return offset(d.Pos()) <= at && at+len(w.change.from) <= offset(d.End())
		})
		function, ok := (*ast.FuncDecl)(nil), false
		if index >= 0 {
			function, ok = file.Decls[index].(*ast.FuncDecl)
		}
		if !ok || at < offset(function.Body.Lbrace) {
			return "", "", fmt.Errorf("%s: %q is in the body of no function", w.mutant, w.change.from)
		}
		if copies[function] == nil {
			copies[function] = map[string][]edit{}
		}
		copies[function][w.mutant] = append(copies[function][w.mutant], made)
	}
	return rewrite(text, file, offset, ofAll, copies)
}

// rewrite makes the edits that all mutants have, puts the switches in, and the copies at the end.
func rewrite(
	text string, file *ast.File, offset func(token.Pos) int, edits []edit, copies map[*ast.FuncDecl]map[string][]edit,
) (changed, name string, err error) {
	var end strings.Builder
	for _, declaration := range file.Decls {
		function, _ := declaration.(*ast.FuncDecl)
		mutants, is := copies[function]
		if !is {
			continue
		}
		names, call, err := forwarded(text, function, offset)
		if err != nil {
			return "", "", err
		}
		edits = append(edits, names...)
		begin := offset(function.Body.Lbrace) + 1
		for _, mutant := range slices.Sorted(maps.Keys(mutants)) { // always alike, so that the compiler's cache knows it
			suffix := "_" + strings.ReplaceAll(mutant, "-", "_")
			after := "; return"
			if function.Type.Results != nil {
				after = ""
			}
			choose := fmt.Sprintf(" if chosenMutant == %q { %s%s }\n", mutant, fmt.Sprintf(call, suffix), after)
			edits = append(edits, edit{begin, begin, choose})
			named := edit{offset(function.Name.End()), offset(function.Name.End()), suffix}
			end.WriteString("\n" + apply(text, append(mutants[mutant], named), offset(function.Pos()),
				offset(function.End())) + "\n")
		}
	}
	result, err := format.Source([]byte(apply(text, edits, 0, len(text)) + end.String()))
	if err != nil {
		return "", "", err
	}
	return string(result), file.Name.Name, nil
}

// forwarded is the statement that calls a function with what it was called with, %s being the end of the other's
// name, and what gives names to parameters without one.
func forwarded(text string, function *ast.FuncDecl, offset func(token.Pos) int) (names []edit, call string, err error) {
	call = function.Name.Name + "%s"
	if function.Recv != nil {
		receiver := function.Recv.List[0].Names
		if len(receiver) == 0 || receiver[0].Name == "_" {
			return nil, "", fmt.Errorf("%s: its receiver has no name", function.Name.Name)
		}
		call = receiver[0].Name + "." + call
	}
	if types := function.Type.TypeParams; types != nil {
		var all []string
		for _, field := range types.List {
			for _, name := range field.Names {
				all = append(all, name.Name)
			}
		}
		call += "[" + strings.Join(all, ", ") + "]"
	}
	var arguments []string
	for _, field := range function.Type.Params.List {
		if len(field.Names) == 0 {
			return nil, "", fmt.Errorf("%s: a parameter has no name", function.Name.Name)
		}
		for _, name := range field.Names {
			argument := name.Name
			if argument == "_" {
				argument = "given" + strconv.Itoa(len(arguments))
				names = append(names, edit{offset(name.Pos()), offset(name.End()), argument})
			}
			if strings.HasPrefix(text[offset(field.Type.Pos()):], "...") {
				argument += "..."
			}
			arguments = append(arguments, argument)
		}
	}
	call += "(" + strings.Join(arguments, ", ") + ")"
	if function.Type.Results != nil {
		call = "return " + call
	}
	return names, call, nil
}

// apply makes the edits in a part of a text.
func apply(text string, edits []edit, from, to int) string {
	slices.SortStableFunc(edits, func(a, b edit) int { return a.from - b.from })
	var out strings.Builder
	for _, e := range edits {
		out.WriteString(text[from:e.from] + e.text)
		from = e.to
	}
	return out.String() + text[from:to]
}

// choice is the file that a package with mutants gets besides: which of them the process is, and its texts.
func choice(name string, texts []wrong) string {
	var out strings.Builder
	imports := `"os"`
	if len(texts) > 0 {
		imports += "\n\"strings\""
	}
	fmt.Fprintf(&out, "package %s\n\nimport (\n%s\n)\n\nvar chosenMutant = os.Getenv(%q)\n", name, imports, variable)
	if len(texts) == 0 {
		return out.String()
	}
	out.WriteString("\nfunc mutantText(file, text string) string {\n")
	for _, w := range texts {
		base := filepath.Base(w.change.file) // packages name their texts with or without the ending
		short := strings.TrimSuffix(base, filepath.Ext(base))
		fmt.Fprintf(&out, "if chosenMutant == %q && (file == %q || file == %q) {\n", w.mutant, base, short)
		fmt.Fprintf(&out, "if !strings.Contains(text, %q) { panic(%q) }\n", w.change.from, w.mutant+" changes nothing")
		fmt.Fprintf(&out, "text = strings.Replace(text, %q, %q, 1)\n}\n", w.change.from, w.change.to)
	}
	out.WriteString("return text\n}\n")
	return out.String()
}
