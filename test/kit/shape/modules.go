package shape

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// wantModules is how many modules there are: one per broker, and none that could be part of another.
const wantModules = 14

var modulePattern = regexp.MustCompile(`(?m)^module\s+(\S+)`)

// modulePath is the path of the root module.
func (r *Repository) modulePath() string {
	text, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	if match := modulePattern.FindSubmatch(text); err == nil && match != nil {
		return string(match[1])
	}
	return ""
}

const (
	architecture = "ARCHITECTURE.md"
	moduleHeader = "| module | requires | who needs it |\n"
)

// tableOfModules are the folders that ARCHITECTURE.md's table of modules names.
func (r *Repository) tableOfModules() ([]string, error) {
	page, err := os.ReadFile(filepath.Join(r.root, architecture))
	if err != nil {
		return nil, fmt.Errorf("shape: %w", err)
	}
	_, table, found := strings.Cut(string(page), moduleHeader)
	if !found {
		return nil, fmt.Errorf("shape: %s has no table %q", architecture, strings.TrimSpace(moduleHeader))
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var all []string
	for line := range strings.Lines(table) {
		if cells := strings.Split(line, "|"); len(cells) > 2 && !strings.HasPrefix(strings.TrimSpace(cells[1]), "-") {
			all = append(all, strings.Trim(cells[1], " `"))
		}
	}
	return all, nil
}

// wrongModules compares the folders that have a go.mod with the table, with go.work, and with the number that is
// wanted.
func (r *Repository) wrongModules() (findings []Finding, err error) {
	table, err := r.tableOfModules()
	if err != nil {
		return nil, err
	}
	work, err := r.workspace()
	if err != nil {
		return nil, err
	}
	for page, listed := range map[string][]string{architecture: table, "go.work": work} {
		for _, folder := range r.modules {
			if !slices.Contains(listed, folder) {
				findings = append(findings, Finding{page, 0, folder + " is a module and not named here"})
			}
		}
		for _, folder := range listed {
			if !slices.Contains(r.modules, folder) {
				findings = append(findings, Finding{page, 0, folder + " is named here and no module"})
			}
		}
	}
	if len(r.modules) != wantModules {
		findings = append(findings, Finding{
			architecture, 0, fmt.Sprintf("%d modules, %d are wanted", len(r.modules), wantModules),
		})
	}
	return findings, nil
}

// workspace are the folders that go.work uses.
func (r *Repository) workspace() ([]string, error) {
	var work struct {
		Use []struct{ DiskPath string }
	}
	if err := goJSON(r.root, &work, "work", "edit", "-json", filepath.Join(r.root, "go.work")); err != nil {
		return nil, err
	}
	var folders []string
	for _, use := range work.Use {
		folders = append(folders, filepath.ToSlash(filepath.Clean(use.DiskPath)))
	}
	return folders, nil
}

// rootRequires finds what the root module requires or replaces, which must be nothing.
func (r *Repository) rootRequires() (findings []Finding, err error) {
	var module struct {
		Require []struct{ Path string }
		Replace []struct{ Old struct{ Path string } }
	}
	if err := goJSON(r.root, &module, "mod", "edit", "-json", filepath.Join(r.root, "go.mod")); err != nil {
		return nil, err
	}
	for _, required := range module.Require {
		findings = append(findings, Finding{"go.mod", 0, "requires " + required.Path + ": the root module requires nothing"})
	}
	for _, replaced := range module.Replace {
		findings = append(findings, Finding{
			"go.mod", 0, "replaces " + replaced.Old.Path + ": a user's build would not see it",
		})
	}
	return findings, nil
}

// goJSON reads what the go command prints.
func goJSON(folder string, into any, arguments ...string) error {
	command := exec.Command("go", arguments...)
	command.Dir = folder
	var problems strings.Builder
	command.Stderr = &problems
	output, err := command.Output()
	if err != nil {
		return fmt.Errorf("shape: go %s: %w\n%s", strings.Join(arguments, " "), err, problems.String())
	}
	if err := json.Unmarshal(output, into); err != nil {
		return fmt.Errorf("shape: go %s: %w", strings.Join(arguments, " "), err)
	}
	return nil
}
