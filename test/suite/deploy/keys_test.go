package deploy

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

const root = "../../.."

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// key is a line of docs/reference/configuration.md, which the program itself writes.
type key struct{ name, kind, otherwise string }

var keyPattern = regexp.MustCompile("(?m)^\\| `([a-z_.]+)` \\| (.+?) \\| (.+?) \\| ")

func keys(t *testing.T) []key {
	t.Helper()
	var all []key
	for _, row := range keyPattern.FindAllStringSubmatch(read(t, "docs/reference/configuration.md"), -1) {
		all = append(all, key{name: row[1], kind: row[2], otherwise: strings.Trim(row[3], "`")})
	}
	if len(all) < 30 {
		t.Fatalf("docs/reference/configuration.md has %d keys: this test does not see them", len(all))
	}
	return all
}

func find(t *testing.T, name string) key {
	t.Helper()
	all := keys(t)
	i := slices.IndexFunc(all, func(k key) bool { return k.name == name })
	if i < 0 {
		t.Fatalf("there is no key %s", name)
	}
	return all[i]
}

// variables are the names of the environment that the program understands.
func variables(all []key) map[string]bool {
	known := map[string]bool{"POSTHASTE_CONFIG": true}
	for _, k := range all {
		name := "POSTHASTE_" + strings.ToUpper(strings.ReplaceAll(k.name, ".", "_"))
		known[name] = true
		if k.kind == "secret" {
			known[name+"_FILE"] = true
		}
	}
	return known
}

// files are all that somebody deploys with, and the pages that tell him how.
func files(t *testing.T) []string {
	t.Helper()
	list := []string{
		"Dockerfile", "compose.yaml", "Procfile", "heroku.yml",
		"docs/outbox.md", "docs/operate/deploy.md", "docs/operate/operations.md", "docs/operate/publisher.md",
	}
	for _, folder := range []string{"deploy", "test/suite/deploy/testdata"} {
		err := filepath.WalkDir(filepath.Join(root, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			name, err := filepath.Rel(root, path)
			list = append(list, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return list
}

var (
	variablePattern = regexp.MustCompile(`POSTHASTE_[A-Z0-9_]*[A-Z0-9]`)
	quotedPattern   = regexp.MustCompile("`([a-z]+(?:\\.[a-z_]+)+)(?::[^`]*)?`")
	googlesPattern  = regexp.MustCompile(`^pubsub\.(topics|subscriptions)\.`) // Google's permissions
	flagPattern     = regexp.MustCompile("(?m)(?:^|`|bin/|exec |-- )(outbox-publisher[^\n|#;&\"'`]*)")
)

// unknown lists what a text names that the program does not understand: variables, keys in backticks, and flags of
// its command lines.
func unknown(text string, all []key) (names []string) {
	known, groups, named := variables(all), map[string]bool{}, map[string]bool{}
	flags := map[string]bool{"--config": true, "--live": true, "--help": true}
	names = slices.DeleteFunc(variablePattern.FindAllString(text, -1), func(name string) bool { return known[name] })
	for _, k := range all {
		name := k.name
		groups[strings.Split(name, ".")[0]], named[name] = true, true
		if k.kind == "secret" { // has no flag; its file has one
			name += "_file"
			named[name] = true
		}
		flags["--"+strings.NewReplacer(".", "-", "_", "-").Replace(name)] = true
	}
	for _, match := range quotedPattern.FindAllStringSubmatch(text, -1) {
		group, _, _ := strings.Cut(match[1], ".")
		if groups[group] && !named[match[1]] && !googlesPattern.MatchString(match[1]) {
			names = append(names, match[1])
		}
	}
	for _, line := range flagPattern.FindAllStringSubmatch(text, -1) {
		for _, word := range strings.Fields(line[1])[1:] {
			if flag, _, _ := strings.Cut(strings.Trim(word, "`,.)"), "="); strings.HasPrefix(flag, "--") && !flags[flag] {
				names = append(names, flag)
			}
		}
	}
	return names
}

func TestEverythingNamedIsUnderstood(t *testing.T) {
	t.Parallel()
	all, seen := keys(t), 0
	for _, file := range files(t) {
		text := read(t, file)
		seen += len(variablePattern.FindAllString(text, -1))
		for _, name := range unknown(text, all) {
			t.Errorf("%s names %s, which the program does not understand", file, name)
		}
	}
	if seen < 20 {
		t.Errorf("saw %d variables: this test does not see them", seen)
	}
}

func TestWhatIsNotUnderstoodIsFound(t *testing.T) {
	t.Parallel()
	all := keys(t)
	for _, text := range []string{
		"POSTHASTE_DATABASE_URI=x", "POSTHASTE_RELAY_DRAIN_FILE: x", "set `relay.drian` to", "`relay.drian: 5s`",
		"outbox-publisher --conf=x", "outbox-publisher health --ready",
		"outbox-publisher --database-url=x", "`relay.drain_file`",
	} {
		if len(unknown(text, all)) != 1 {
			t.Errorf("%q: found %v", text, unknown(text, all))
		}
	}
	for _, text := range []string{
		"POSTHASTE_DATABASE_URL_FILE=x POSTHASTE_CONFIG=y", "`relay.drain: 5s` `outbox_dlq.error_reason`",
		"outbox-publisher --relay-drain=5s | x --foo", "outbox-publisher --database-url-file=x `database.url_file`",
	} {
		if found := unknown(text, all); len(found) > 0 {
			t.Errorf("%q: found %v", text, found)
		}
	}
}

// hangUp is what a publisher may need after its drain: the probes and the connections have a few seconds to close.
const hangUp = 10 * time.Second

// enough says why whatever stops a publisher does not wait long enough.
func enough(grace, drain time.Duration) error {
	if grace < drain+hangUp {
		return fmt.Errorf("waits %s for a drain of %s: it must be %s or more", grace, drain, drain+hangUp)
	}
	return nil
}

func duration(t *testing.T, text string) time.Duration {
	t.Helper()
	parsed, err := time.ParseDuration(text)
	if err != nil {
		t.Fatal(err)
	}
	return parsed
}

// defaultDrain is relay.drain of a publisher that was told nothing.
func defaultDrain(t *testing.T) time.Duration {
	t.Helper()
	return duration(t, find(t, "relay.drain").otherwise)
}

// defaultPort is where a publisher that was told nothing answers its probes.
func defaultPort(t *testing.T) string {
	t.Helper()
	_, port, found := strings.Cut(find(t, "http.listen").otherwise, ":")
	if !found {
		t.Fatal("http.listen has no port")
	}
	return port
}

func TestAGraceThatIsTooShortIsFound(t *testing.T) {
	t.Parallel()
	if enough(29*time.Second, 20*time.Second) == nil || enough(30*time.Second, 20*time.Second) != nil {
		t.Error("29 s are too short for a drain of 20 s, and 30 s are not")
	}
}
