package supply

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

// workflow is what is checked of a file in .github/workflows.
type workflow struct {
	Permissions any            `yaml:"permissions"`
	Concurrency any            `yaml:"concurrency"`
	On          map[string]any `yaml:"on"`
	Jobs        map[string]job `yaml:"jobs"`
}

type job struct {
	Timeout     int               `yaml:"timeout-minutes"`
	Permissions map[string]string `yaml:"permissions"`
	Environment string            `yaml:"environment"`
	Needs       names             `yaml:"needs"`
	Uses        string            `yaml:"uses"`
	Steps       []step            `yaml:"steps"`
}

// names are one or several.
type names []string

func (n *names) UnmarshalYAML(node *yaml.Node) error {
	if node.Kind == yaml.ScalarNode {
		*n = names{node.Value}
		return nil
	}
	return node.Decode((*[]string)(n))
}

type step struct {
	Uses string         `yaml:"uses"`
	Run  string         `yaml:"run"`
	With map[string]any `yaml:"with"`
}

var (
	pinnedPattern = regexp.MustCompile(`^[\w.-]+/[\w./-]+@[0-9a-f]{40}$`)
	commentedUse  = regexp.MustCompile(`(?m)uses: \S+@[0-9a-f]{40} # v\d+\.\d+\.\d+$`)
	scriptPattern = regexp.MustCompile(`(?:^|[\s;&|(])((?:scripts|services|\.ci)/[\w./-]+)`)
	targetPattern = regexp.MustCompile(`(?:^|[\s;&|(])make ([a-z-]+)`)
	historyNeeded = regexp.MustCompile(`\.ci/run|scripts/release|make (?:ci|proof-upgrade|release-rehearsal)\b`)
	setupNeeded   = regexp.MustCompile(`scripts/release(?: check|-archives)`)
	testedPattern = regexp.MustCompile(`(?:^|\s)(\./(?:test|relay|console)[\w/]*)`)
	otherServers  = regexp.MustCompile(`test/kit/(?:server|cluster)"|(?i:services[._](?:nats|redis|pubsub|pgbouncer))`)
)

// faults are what is wrong with a workflow, by its text.
func faults(text string) (all []string) {
	problem := func(format string, args ...any) { all = append(all, fmt.Sprintf(format, args...)) }
	var flow workflow
	if err := yaml.Unmarshal([]byte(text), &flow); err != nil {
		return []string{err.Error()}
	}
	if got := fmt.Sprint(flow.Permissions); got != "map[contents:read]" {
		problem("its permissions are %s and not to read alone: a job that needs more asks for it", got)
	}
	if flow.Concurrency == nil {
		problem("it has no concurrency")
	}
	if _, found := flow.On["pull_request_target"]; found {
		problem("pull_request_target hands secrets to strangers")
	}
	if len(flow.Jobs) == 0 {
		problem("it has no jobs")
	}
	uses := 0
	for name, job := range flow.Jobs {
		if job.Timeout <= 0 {
			problem("job %s has no timeout-minutes", name)
		}
		if job.isShallow() {
			problem("job %s needs the whole history: its checkout has no fetch-depth: 0", name)
		}
		if job.isWithoutGo() {
			problem("job %s runs the go command, and has not set it up", name)
		}
		if flow.isUnchecked(name) {
			problem("job %s publishes, and does not wait for the job that checks the tags", name)
		}
		if (job.Permissions["id-token"] == "write" || job.Permissions["contents"] == "write") && job.Environment == "" {
			problem("job %s signs or releases, and has no environment", name)
		}
		for _, step := range append(job.Steps, step{Uses: job.Uses}) {
			if step.Uses != "" {
				uses++
			}
			all = append(all, step.faults(name)...)
		}
	}
	if commented := len(commentedUse.FindAllString(text, -1)); commented != uses {
		problem("%d of %d actions have their version in a comment", commented, uses)
	}
	slices.Sort(all)
	return all
}

// isShallow tells whether a job runs what asks the history, with no more of it than the newest commit.
func (j job) isShallow() bool {
	asked, whole := false, false
	for _, s := range j.Steps {
		asked = asked || historyNeeded.MatchString(s.Run)
		whole = whole || strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["fetch-depth"] == 0
	}
	return asked && !whole
}

// isWithoutGo tells whether a job checks or builds a release with whatever Go is there.
func (j job) isWithoutGo() bool {
	asked, there := false, false
	for _, s := range j.Steps {
		asked = asked || setupNeeded.MatchString(s.Run)
		there = there || strings.HasPrefix(s.Uses, "actions/setup-go@")
	}
	return asked && !there
}

// isUnchecked tells whether a job may write and waits, itself or by those it waits for, for none that checks the tags.
// Only what is started by tags has any to check.
func (w *workflow) isUnchecked(name string) bool {
	push, _ := w.On["push"].(map[string]any)
	permissions := slices.Collect(maps.Values(w.Jobs[name].Permissions))
	if _, byTag := push["tags"]; !byTag || !slices.Contains(permissions, "write") {
		return false
	}
	var checked func(name string) bool
	checked = func(name string) bool {
		return slices.ContainsFunc(w.Jobs[name].Steps, func(s step) bool {
			return strings.Contains(s.Run, "scripts/release check")
		}) || slices.ContainsFunc(w.Jobs[name].Needs, checked)
	}
	return !checked(name)
}

func (s step) faults(job string) (all []string) {
	problem := func(format string, args ...any) {
		all = append(all, "job "+job+": "+fmt.Sprintf(format, args...))
	}
	if s.Uses != "" && !pinnedPattern.MatchString(s.Uses) {
		problem("%s is not pinned by a commit", s.Uses)
	}
	if strings.HasPrefix(s.Uses, "actions/checkout@") && s.With["persist-credentials"] != false {
		problem("its checkout leaves the token in the folder")
	}
	if strings.Contains(s.Run, "${{") {
		problem("an expression in a command is a hole: pass it in env")
	}
	for _, match := range scriptPattern.FindAllStringSubmatch(s.Run, -1) {
		if info, err := os.Stat(filepath.Join(root, match[1])); err != nil || info.Mode()&0o100 == 0 {
			problem("there is no program %s", match[1])
		}
	}
	for _, match := range testedPattern.FindAllStringSubmatch(s.Run, -1) {
		if _, err := os.Stat(filepath.Join(root, match[1])); err != nil {
			problem("there is no package %s", match[1])
		}
	}
	for _, match := range targetPattern.FindAllStringSubmatch(s.Run, -1) {
		if file, err := os.ReadFile(filepath.Join(root, "Makefile")); err != nil ||
			!strings.Contains("\n"+string(file), "\n"+match[1]+":") {
			problem("make has no target %s", match[1])
		}
	}
	return all
}

// workflows are the files, by their names.
func workflows(t *testing.T) map[string]string {
	t.Helper()
	names, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil || len(names) < 2 {
		t.Fatalf("found %d workflows, %v", len(names), err)
	}
	all := map[string]string{}
	for _, name := range names {
		all[filepath.Base(name)] = read(t, name)
	}
	return all
}

func TestWorkflows(t *testing.T) {
	t.Parallel()
	for name, text := range workflows(t) {
		for _, fault := range faults(text) {
			t.Errorf("%s: %s", name, fault)
		}
	}
}

// GitHub's own rules, as a linter of workflows knows them.
func TestWorkflowsAsGitHubReadsThem(t *testing.T) {
	t.Parallel()
	code, said := run(t, nil, "scripts/tools", "actionlint")
	if code != 0 {
		t.Fatalf("scripts/tools actionlint: exit code %d\n%s", code, said)
	}
	lines := strings.Split(strings.TrimSpace(said), "\n")
	linter := lines[len(lines)-1]
	lint := func(names ...string) (int, string) {
		return run(t, nil, linter, append([]string{"-no-color", "-shellcheck=", "-pyflakes="}, names...)...)
	}
	names, err := filepath.Glob(filepath.Join(root, ".github/workflows/*"))
	if err != nil {
		t.Fatal(err)
	}
	for i, name := range names {
		names[i] = here(t, name)
	}
	if code, said := lint(names...); code != 0 {
		t.Errorf("exit code %d\n%s", code, said)
	}
	wrong := filepath.Join(t.TempDir(), "wrong.yml")
	put(t, wrong, strings.Replace(read(t, names[0]), "runs-on:", "runs-at:", 1))
	if code, said := lint(wrong); code != 1 || !strings.Contains(said, "runs-at") {
		t.Errorf("a workflow with a wrong key: exit code %d\n%s", code, said)
	}
}

// A check that lets a careless workflow pass is none.
func TestFaultsOfWorkflowsAreSeen(t *testing.T) {
	t.Parallel()
	const good = `on: {push: {tags: ["v*"]}}
permissions:
  contents: read
concurrency: release
jobs:
  one:
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@0123456789012345678901234567890123456789 # v1.2.3
        with: {persist-credentials: false}
      - run: scripts/build && make house
      - run: go test ./test/suite/inbox
  archives:
    timeout-minutes: 5
    steps:
      - uses: actions/checkout@0123456789012345678901234567890123456789 # v1.2.3
        with: {persist-credentials: false, fetch-depth: 0}
      - uses: actions/setup-go@0123456789012345678901234567890123456789 # v1.2.3
      - run: scripts/release check
  image:
    needs: archives
    timeout-minutes: 5
    permissions: {packages: write}
  sign:
    needs: [one, image]
    environment: release
    timeout-minutes: 5
    permissions: {id-token: write}
`
	_, jobs, found := strings.Cut(good, "jobs:")
	if all := faults(good); len(all) != 0 || !found {
		t.Fatalf("a good one: %q", all)
	}
	for name, c := range map[string]struct{ from, to, says string }{
		"a tag":                {"0123456789012345678901234567890123456789 # v1.2.3", "v1", "not pinned"},
		"a short commit":       {"0123456789012345678901234567890123456789", "0123456", "not pinned"},
		"no version":           {" # v1.2.3", "", "2 of 3 actions"},
		"no permissions":       {"permissions:\n  contents: read\n", "", "permissions are <nil>"},
		"all permissions":      {"permissions:\n  contents: read", "permissions: write-all", "permissions are write-all"},
		"more permissions":     {"contents: read", "contents: write", "asks for it"},
		"no concurrency":       {"concurrency: release\n", "", "no concurrency"},
		"no limit of time":     {"    timeout-minutes: 5\n", "", "no timeout-minutes"},
		"the token stays":      {"false", "true", "leaves the token"},
		"no such script":       {"scripts/build", "scripts/built", "no program scripts/built"},
		"no such target":       {"make house", "make home", "no target home"},
		"no such package":      {"suite/inbox", "suite/outbox", "no package ./test/suite/outbox"},
		"no history":           {"scripts/build", ".ci/run", "needs the whole history"},
		"an own Go":            {"actions/setup-go", "actions/setup", "job archives runs the go command"},
		"no check":             {"    needs: archives\n", "", "job image publishes, and does not wait"},
		"no check far before":  {"[one, image]", "one", "job sign publishes, and does not wait"},
		"nobody lets it sign":  {"    environment: release\n", "", "job sign signs or releases"},
		"strangers get in":     {"push: {", "pull_request_target: {", "hands secrets"},
		"text into a command":  {"make house", "echo ${{ github.head_ref }}", "is a hole"},
		"nothing that is done": {jobs, " {}\n", "no jobs"},
		"no YAML":              {"on: {", "on: {{", "yaml"},
	} {
		text := strings.Replace(good, c.from, c.to, 1)
		if text == good {
			t.Errorf("%s: nothing is replaced", name)
		}
		if all := strings.Join(faults(text), "\n"); !strings.Contains(all, c.says) {
			t.Errorf("%s: %q, want %q in it", name, all, c.says)
		}
	}
}

// Dependabot looks at every module, and CI builds with what the modules say they need and the images are made of.
func TestDependabotNamesEveryModule(t *testing.T) {
	t.Parallel()
	var bot struct {
		Updates []struct {
			Ecosystem   string   `yaml:"package-ecosystem"`
			Directories []string `yaml:"directories"`
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, filepath.Join(root, ".github/dependabot.yml"))), &bot); err != nil {
		t.Fatal(err)
	}
	looked := map[string][]string{}
	for _, update := range bot.Updates {
		looked[update.Ecosystem] = append(looked[update.Ecosystem], update.Directories...)
	}
	var modules []string
	for line := range strings.Lines(read(t, filepath.Join(root, "go.work"))) {
		if folder, found := strings.CutPrefix(line, "\t."); found {
			modules = append(modules, "/"+strings.Trim(folder, "/\n"))
		}
	}
	slices.Sort(modules)
	slices.Sort(looked["gomod"])
	if !slices.Equal(looked["gomod"], modules) || len(modules) < 10 {
		t.Errorf("it looks at %q, and the modules are %q", looked["gomod"], modules)
	}
	if _, found := looked["github-actions"]; !found {
		t.Error("it does not look at the actions")
	}
}

func TestWorkflowsNameTheVersionsOfGo(t *testing.T) {
	t.Parallel()
	goPattern := regexp.MustCompile(`(?m)^go (\S+)$`)
	least := func(module string) string {
		return goPattern.FindStringSubmatch(read(t, filepath.Join(root, module, "go.mod")))[1]
	}
	image := regexp.MustCompile(`FROM golang:(\S+)-`).FindStringSubmatch(read(t, filepath.Join(root, "Dockerfile")))[1]
	all := workflows(t)
	for name, wants := range map[string][]string{
		"ci.yml": {
			`go: "` + least(".") + `"`, `go: "` + least("relay") + `"`, "go: stable", `go-version: "` + image + `"`,
			"golang:" + image + "-bookworm", `postgres: ["15", "16", "17", "18"]`,
		},
		"release.yml": {`go-version: "` + image + `"`},
	} {
		for _, want := range wants {
			if !strings.Contains(all[name], want) {
				t.Errorf("%s has no %s", name, want)
			}
		}
	}
	// What is signed is built by the same Go as the image.
	if count := strings.Count(all["release.yml"], "go-version:"); count != 1 {
		t.Errorf("release.yml has %d versions of Go", count)
	}
}

// The tests of ci.yml that a runner with nothing but PostgreSQL runs ask for nothing else.
func TestWorkflowsTestWhatTheirRunnersHave(t *testing.T) {
	t.Parallel()
	tested := testedPattern.FindAllStringSubmatch(workflows(t)["ci.yml"], -1)
	if len(tested) < 3 {
		t.Fatalf("found %q", tested)
	}
	wanting := func(folder string) string {
		names, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil || len(names) == 0 {
			t.Fatalf("%s has %d files, %v", folder, len(names), err)
		}
		for _, name := range names {
			if found := otherServers.FindString(read(t, name)); found != "" {
				return name + ": " + found
			}
		}
		return ""
	}
	for _, match := range tested {
		if what := wanting(match[1]); what != "" {
			t.Errorf("ci.yml tests %s, which needs more: %s", match[1], what)
		}
	}
	if wanting("test/suite/doctor") == "" {
		t.Error("test/suite/doctor starts servers of its own, and that is not seen")
	}
}
