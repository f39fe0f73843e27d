package shape

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os/exec"
	"path"
	"path/filepath"
	"strconv"
	"strings"
)

// bigInterfaces finds interfaces with too many methods, those of embedded interfaces counted. Not in tests, whose fakes
// speak whole protocols, and not in the core, whose store is split with its new shape.
func (r *Repository) bigInterfaces() (findings []Finding, err error) {
	lookup := newInterfaces(r)
	for _, s := range r.sources {
		if !s.isGo() || s.class == test || under(s.path, coreFolder) {
			continue
		}
		ast.Inspect(s.file, func(node ast.Node) bool {
			declared, is := node.(*ast.InterfaceType)
			if !is || err != nil {
				return err == nil
			}
			var methods map[string]bool
			if methods, err = lookup.methods(scope{s.folder(), s.file}, declared); len(methods) > maxMethods {
				text := fmt.Sprintf("an interface of %d methods, %d at most", len(methods), maxMethods)
				findings = append(findings, Finding{s.path, r.line(declared.Pos()), text})
			}
			return true
		})
		if err != nil {
			return nil, fmt.Errorf("shape: %s: %w", s.path, err)
		}
	}
	return findings, nil
}

// scope is where a name is looked up: the file's imports, and the package of its folder.
type scope struct {
	folder string // from the root; absolute for what is not ours
	file   *ast.File
}

// named is a type with the scope of its declaration.
type named struct {
	scope scope
	spec  *ast.TypeSpec
}

// interfaces looks up types by the folder of their package.
type interfaces struct {
	root     string
	prefix   string // the path of the root module
	packages map[string]map[string]named
	folders  map[string]string // of import paths that are not ours
}

func newInterfaces(r *Repository) *interfaces {
	all := &interfaces{r.root, r.modulePath(), map[string]map[string]named{}, map[string]string{}}
	for _, s := range r.sources {
		if s.isGo() {
			all.add(scope{s.folder(), s.file})
		}
	}
	return all
}

func (i *interfaces) add(s scope) {
	types := i.packages[s.folder]
	if types == nil {
		types = map[string]named{}
		i.packages[s.folder] = types
	}
	for _, declaration := range s.file.Decls {
		general, is := declaration.(*ast.GenDecl)
		if !is {
			continue
		}
		for _, spec := range general.Specs {
			if t, is := spec.(*ast.TypeSpec); is {
				types[t.Name.Name] = named{s, t}
			}
		}
	}
}

// methods are the names of an interface's methods, with those of what it embeds.
func (i *interfaces) methods(s scope, declared *ast.InterfaceType) (map[string]bool, error) {
	all := map[string]bool{}
	for _, field := range declared.Methods.List {
		for _, name := range field.Names {
			all[name.Name] = true
		}
		if len(field.Names) > 0 {
			continue
		}
		embedded, err := i.embedded(s, field.Type)
		if err != nil {
			return nil, err
		}
		for name := range embedded {
			all[name] = true
		}
	}
	return all, nil
}

// embedded are the methods that an element of an interface brings; none for a union or a type that is no interface.
func (i *interfaces) embedded(s scope, element ast.Expr) (map[string]bool, error) {
	switch e := element.(type) {
	case *ast.ParenExpr:
		return i.embedded(s, e.X)
	case *ast.IndexExpr:
		return i.embedded(s, e.X)
	case *ast.IndexListExpr:
		return i.embedded(s, e.X)
	case *ast.InterfaceType:
		return i.methods(s, e)
	case *ast.Ident:
		if found, declared := i.packages[s.folder][e.Name]; declared {
			return i.embedded(found.scope, found.spec.Type)
		}
		if e.Name == "error" {
			return map[string]bool{"Error": true}, nil
		}
	case *ast.SelectorExpr:
		folder, err := i.imported(s, e)
		if err != nil {
			return nil, err
		}
		found, declared := i.packages[folder][e.Sel.Name]
		if !declared {
			return nil, fmt.Errorf("the embedded %s is not in %s", e.Sel.Name, folder)
		}
		return i.embedded(found.scope, found.spec.Type)
	}
	return map[string]bool{}, nil
}

// imported is the folder of the package that a selector names. What is not ours is parsed when it is first met.
func (i *interfaces) imported(s scope, selector *ast.SelectorExpr) (string, error) {
	name, is := selector.X.(*ast.Ident)
	if !is {
		return "", fmt.Errorf("an embedded %T", selector.X)
	}
	for _, spec := range s.file.Imports {
		imported, err := strconv.Unquote(spec.Path.Value)
		if err != nil {
			return "", err
		}
		if spec.Name != nil && spec.Name.Name == name.Name || spec.Name == nil && packageName(imported) == name.Name {
			if imported == i.prefix || strings.HasPrefix(imported, i.prefix+"/") {
				return path.Clean(strings.TrimPrefix(strings.TrimPrefix(imported, i.prefix), "/")), nil
			}
			return i.parse(s, imported)
		}
	}
	return "", fmt.Errorf("no import for the embedded %s.%s", name.Name, selector.Sel.Name)
}

// packageName is what an import path is most probably called: its last part, without a major version.
func packageName(imported string) string {
	name := path.Base(imported)
	if len(name) > 1 && name[0] == 'v' && strings.Trim(name[1:], "0123456789") == "" {
		name = path.Base(path.Dir(imported))
	}
	return strings.TrimSuffix(name, ".go")
}

// parse reads the package of an import path, as the go command finds it from the folder of who imports it.
func (i *interfaces) parse(s scope, imported string) (string, error) {
	if folder, known := i.folders[imported]; known {
		return folder, nil
	}
	command := exec.Command("go", "list", "-f", "{{.Dir}}", imported)
	command.Dir = s.folder
	if !filepath.IsAbs(s.folder) {
		command.Dir = filepath.Join(i.root, s.folder)
	}
	output, err := command.Output()
	if err != nil {
		return "", fmt.Errorf("go list %s: %w", imported, err)
	}
	folder := strings.TrimSpace(string(output))
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return "", err
	}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		if err != nil {
			return "", err
		}
		i.add(scope{folder, file})
	}
	i.folders[imported] = folder
	return folder, nil
}
