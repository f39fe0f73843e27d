package docs

import (
	"slices"
	"strings"
	"testing"
)

const minorVersion = ours + "/internal/oneversion"

// unmarked are the packages of a module, with its path, that others can import or run, that use our other modules, and
// that build in whatever minor version those have.
func unmarked(module string, all []pkg) (names []string) {
	byPath := map[string]pkg{}
	for _, p := range all {
		byPath[p.ImportPath] = p
	}
	own := func(path string) bool { return path == module || strings.HasPrefix(path, module+"/") }
	var reaches func(path string, wanted func(string) bool) bool
	reaches = func(path string, wanted func(string) bool) bool {
		return slices.ContainsFunc(byPath[path].Imports, func(imported string) bool {
			return wanted(imported) || own(imported) && reaches(imported, wanted)
		})
	}
	for _, p := range all {
		internal := strings.Contains(strings.TrimPrefix(p.ImportPath, module)+"/", "/internal/")
		usesOthers := reaches(p.ImportPath, func(path string) bool { return strings.HasPrefix(path, ours+"/") && !own(path) })
		if !internal && usesOthers && !reaches(p.ImportPath, func(path string) bool { return path == minorVersion }) {
			names = append(names, p.name())
		}
	}
	return names
}

// Whatever a user imports of a module, the constant of internal/oneversion is among it: with a root module of another
// minor version it does not compile.
func TestNoPackageBuildsWithAnotherMinorVersion(t *testing.T) {
	t.Parallel()
	for _, module := range modules(t) {
		switch module {
		case ".", "test", "examples/marketplace": // the root itself, and programs that nobody builds on
			continue
		}
		for _, name := range unmarked(ours+"/"+module, packages(t, module)) {
			t.Errorf("%s does not reach internal/oneversion: name its constant in a file oneversion.go", name)
		}
	}
}

func TestPackagesWithoutMinorVersionAreSeen(t *testing.T) {
	t.Parallel()
	const module = ours + "/m"
	all := []pkg{
		{ImportPath: module, Imports: []string{ours + "/outbox", module + "/internal/marked"}},
		{ImportPath: module + "/internal/marked", Imports: []string{minorVersion}},
		{ImportPath: module + "/alone", Imports: []string{"fmt"}},
		{ImportPath: module + "/bare", Imports: []string{module + "/internal/bare"}},
		{ImportPath: module + "/internal/bare", Imports: []string{ours + "/internal/clean"}},
	}
	if names := unmarked(module, all); !slices.Equal(names, []string{"m/bare"}) {
		t.Errorf("found %q", names)
	}
}
