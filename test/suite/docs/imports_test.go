// Package docs tests the shape of the repository: who may import whom, what each module requires, and
// that the pages which promise something are true.
package docs

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	root = "../../.."
	ours = "github.com/posthaste-dev/posthaste"
)

// modules lists the folders of the workspace's modules, relative to the root.
func modules(t *testing.T) []string {
	t.Helper()
	var work struct {
		Use []struct{ DiskPath string }
	}
	if err := json.Unmarshal(goCommand(t, root, "work", "edit", "-json"), &work); err != nil {
		t.Fatal(err)
	}
	var folders []string
	for _, use := range work.Use {
		folders = append(folders, filepath.Clean(use.DiskPath))
	}
	return folders
}

func goCommand(t *testing.T, folder string, args ...string) []byte {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", args...)
	command.Dir = folder
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		t.Fatalf("go %s in %s: %v\n%s", strings.Join(args, " "), folder, err, problems.String())
	}
	return output
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

type pkg struct {
	ImportPath   string
	Imports      []string
	TestImports  []string
	XTestImports []string
	Standard     bool
}

// name is the package's folder relative to the root, "." for the root itself.
func (p pkg) name() string {
	if p.ImportPath == ours {
		return "."
	}
	return strings.TrimPrefix(p.ImportPath, ours+"/")
}

func packages(t *testing.T, module string) []pkg {
	t.Helper()
	decoder := json.NewDecoder(
		strings.NewReader(string(goCommand(t, filepath.Join(root, module), "list", "-json", "./..."))))
	var all []pkg
	for decoder.More() {
		var p pkg
		if err := decoder.Decode(&p); err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	return all
}

func TestTheRootModuleRequiresNothing(t *testing.T) {
	t.Parallel()
	if mod := read(t, "go.mod"); strings.Contains(mod, "require") || strings.Contains(mod, "replace") {
		t.Errorf("the emit side has no dependency at all, yet go.mod says:\n%s", mod)
	}
	if _, err := os.Stat(filepath.Join(root, "go.sum")); err == nil {
		t.Error("a module without requires has no go.sum")
	}
	for _, p := range packages(t, ".") {
		for _, imported := range slices.Concat(p.Imports, p.TestImports, p.XTestImports) {
			if strings.Contains(strings.Split(imported, "/")[0], ".") && !strings.HasPrefix(imported, ours) {
				t.Errorf("%s imports %s", p.name(), imported)
			}
		}
	}
}

func TestNoModuleReplaces(t *testing.T) {
	t.Parallel()
	for _, module := range modules(t) {
		if strings.Contains(read(t, filepath.Join(module, "go.mod")), "replace ") {
			t.Errorf("%s/go.mod has a replace directive: a user's build would not see it", module)
		}
	}
}

// rule is one line of ARCHITECTURE.md's table of packages.
type rule struct {
	folder  string
	imports []string
}

// rules reads the table between the lines "| folder |" and the next empty line.
func rules(t *testing.T) []rule {
	t.Helper()
	_, table, found := strings.Cut(read(t, "ARCHITECTURE.md"), "| folder | what it is | imports |\n")
	if !found {
		t.Fatal("ARCHITECTURE.md has no table | folder | what it is | imports |")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var all []rule
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) != 5 || strings.HasPrefix(cells[1], "---") {
			continue
		}
		folder := strings.Trim(cells[1], " `/")
		if folder == "" {
			folder = "."
		}
		all = append(all, rule{
			folder: folder, imports: strings.Fields(strings.NewReplacer("`", "", ",", " ").Replace(cells[3])),
		})
	}
	return all
}

// ruleFor finds the rule of the package or of the nearest folder above it.
func ruleFor(all []rule, name string) (rule, bool) {
	for folder := name; ; folder = filepath.Dir(folder) {
		for _, r := range all {
			if r.folder == folder {
				return r, true
			}
		}
		if folder == "." {
			return rule{}, false
		}
	}
}

// allowed tells whether a rule lets a package import this. "std" is always allowed; a folder allows
// what is below it; "anything" allows all.
func (r rule) allowed(imported string) bool {
	own, isOurs := strings.CutPrefix(imported, ours+"/")
	if !isOurs && !strings.Contains(strings.Split(imported, "/")[0], ".") {
		return true
	}
	if isOurs {
		imported = own
	}
	return slices.ContainsFunc(r.imports, func(allowed string) bool {
		return allowed == "anything" || imported == allowed || strings.HasPrefix(imported, allowed+"/")
	}) || isOurs && (imported == r.folder || strings.HasPrefix(imported, r.folder+"/"))
}

func TestPackagesImportOnlyWhatTheArchitectureSays(t *testing.T) {
	t.Parallel()
	all := rules(t)
	seen := map[string]bool{}
	for _, module := range modules(t) {
		for _, p := range packages(t, module) {
			r, found := ruleFor(all, p.name())
			if !found {
				t.Errorf("%s has no line in ARCHITECTURE.md", p.name())
				continue
			}
			seen[r.folder] = true
			for _, imported := range p.Imports {
				if !r.allowed(imported) {
					t.Errorf("%s imports %s; ARCHITECTURE.md lets %s import %v", p.name(), imported, r.folder, r.imports)
				}
			}
		}
	}
	for _, r := range all {
		if !seen[r.folder] {
			t.Errorf("ARCHITECTURE.md has a line for %s, which has no packages", r.folder)
		}
	}
}

// The rule itself must be able to refuse.
func TestTheRuleRejects(t *testing.T) {
	t.Parallel()
	r := rule{folder: "outbox", imports: []string{"std"}}
	for imported, want := range map[string]bool{
		"database/sql": true, ours + "/outbox/outboxtest": true, ours + "/schema": false,
		"github.com/jackc/pgx/v5": false, ours + "/outboxx": false,
	} {
		if got := r.allowed(imported); got != want {
			t.Errorf("%s: allowed is %v", imported, got)
		}
	}
}
