package deploy

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/internal/crash"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// rules are the alerts by name, with the anchor that each sends people to.
func rules(t *testing.T) map[string]string {
	t.Helper()
	var file struct {
		Groups []struct {
			Rules []struct {
				Alert       string
				Annotations map[string]string
			}
		}
	}
	if err := yaml.Unmarshal([]byte(read(t, "deploy/prometheus/posthaste.rules.yml")), &file); err != nil {
		t.Fatal(err)
	}
	found := map[string]string{}
	for _, group := range file.Groups {
		for _, rule := range group.Rules {
			if rule.Alert != "" {
				found[rule.Alert] = rule.Annotations["runbook_url"]
			}
		}
	}
	return found
}

var alertPattern = regexp.MustCompile(`(?m)^### (Posthaste\w+)$`)

// Whoever follows an alert's link finds its section, and no section is about an alert that does not exist.
func TestEveryAlertHasItsSection(t *testing.T) {
	t.Parallel()
	page := read(t, "docs/operate/operations.md")
	var sections []string
	for _, match := range alertPattern.FindAllStringSubmatch(page, -1) {
		sections = append(sections, match[1])
	}
	alerts := rules(t)
	for name, link := range alerts {
		if !slices.Contains(sections, name) {
			t.Errorf("%s has no section", name)
		}
		if !strings.HasSuffix(link, "docs/operate/operations.md#"+strings.ToLower(name)) {
			t.Errorf("%s sends people to %q", name, link)
		}
	}
	for _, name := range sections {
		if _, there := alerts[name]; !there {
			t.Errorf("there is a section %s, and no such alert", name)
		}
		_, text, _ := strings.Cut(page, "\n### "+name+"\n")
		text, _, _ = strings.Cut(text, "\n##")
		if !strings.Contains(text, "**Means.**") || !strings.Contains(text, "**Do.**") {
			t.Errorf("%s does not say what it means and what to do", name)
		}
	}
	if len(alerts) < 10 {
		t.Errorf("found %d alerts: this test does not see them", len(alerts))
	}
}

func TestTheOutboxPageHasEveryCrashPoint(t *testing.T) {
	t.Parallel()
	_, table, _ := strings.Cut(read(t, "docs/outbox.md"), "| dies at | then | rule |\n")
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for row := range strings.Lines(table) {
		if cells := strings.Split(row, "|"); len(cells) == 5 {
			for _, match := range regexp.MustCompile("`([a-z_.]+)`").FindAllStringSubmatch(cells[1], -1) {
				listed = append(listed, match[1])
			}
		}
	}
	for _, point := range crash.List() {
		i := slices.Index(listed, point.Name)
		if i < 0 {
			t.Errorf("docs/outbox.md does not say why a crash at %s is safe", point.Name)
			continue
		}
		listed = slices.Delete(listed, i, i+1)
	}
	if len(listed) > 0 {
		t.Errorf("docs/outbox.md has %v, which are no crash points, or stand there twice", listed)
	}
}

var sqlPattern = regexp.MustCompile("(?s)```sql\n(.*?)```")

// What a page tells people to type at night works: each block in a transaction of its own, which is taken back.
func TestTheSQLOfThePagesRuns(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		pool, blocks := db.Open(t, db.URL, "search_path", db.Schema), 0
		for _, page := range []string{"docs/outbox.md", "docs/operate/operations.md", "docs/operate/deploy.md"} {
			for _, block := range sqlPattern.FindAllStringSubmatch(read(t, page), -1) {
				blocks++
				tx, err := pool.Begin(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for statement := range strings.SplitSeq(block[1], ";\n") {
					if _, err := tx.Exec(t.Context(), statement); strings.TrimSpace(statement) != "" && err != nil {
						t.Errorf("%s: %v\n%s", page, err, statement)
						break
					}
				}
				if err := tx.Rollback(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
		}
		if blocks < 12 {
			t.Errorf("ran %d blocks: this test does not see them", blocks)
		}
	})
}

var (
	outboxctlPattern = regexp.MustCompile("(?m)(^|`|\\| |&& |args=1000 )(outboxctl [a-z][^`\n#]*)")
	// bareCommand is a command without its arguments.
	bareCommand = regexp.MustCompile(`^outboxctl( [a-z-]+)+( --[a-z-]+)?$`)
	lineGoesOn  = regexp.MustCompile(`\\\n\s*`)
)

// The commands of outboxctl that a page shows are known to it: it fails for want of a database, and not of
// understanding.
func TestOutboxctlUnderstandsThePages(t *testing.T) {
	t.Parallel()
	shown := 0
	for _, page := range []string{"docs/operate/operations.md", "docs/operate/deploy.md", "docs/operate/publisher.md"} {
		for _, match := range outboxctlPattern.FindAllStringSubmatch(lineGoesOn.ReplaceAllString(read(t, page), ""), -1) {
			line := strings.NewReplacer("EVENT_ID", "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e", "ROLE",
				"somebody", "JOB", "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e").Replace(strings.Split(match[2], " && ")[0])
			if match[1] == "`" && bareCommand.MatchString(line) {
				continue // named in a sentence
			}
			if strings.HasPrefix(line, "outboxctl completion ") || strings.HasPrefix(line, "outboxctl emit ") {
				continue // one needs no database, the other finds that of the machine; they have tests of their own
			}
			shown++
			if match[1] == "| " {
				line = "echo '{}' | " + line // what it reads is looked at before a database is
			}
			text, code := shell(t, line)
			if code != 2 || !strings.Contains(text, "no database is given") && !strings.Contains(text, "no broker is given") {
				t.Errorf("%s: %q: exit code %d\n%s", page, line, code, text)
			}
		}
	}
	if shown < 8 {
		t.Errorf("saw %d commands: this test does not see them", shown)
	}
	if text, code := shell(t, "outboxctl redirve 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e"); code != 2 ||
		strings.Contains(text, "no database is given") {
		t.Errorf("a command that is not there: exit code %d\n%s", code, text)
	}
}

// shell runs a line with the image's programs and no database.
func shell(t *testing.T, line string) (output string, code int) {
	t.Helper()
	return execute(t, t.TempDir(), line, "PATH="+filepath.Dir(program(t, "outboxctl"))+":"+os.Getenv("PATH"), "USER=ada")
}
