package supply

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// database is a small one, as GOVULNDB has it. It knows GO-2026-5970 alone.
func database(t *testing.T) string {
	t.Helper()
	return "GOVULNDB=file://" + here(t, "testdata/vulndb")
}

// emptyDatabase knows nothing.
func emptyDatabase(t *testing.T) string {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, "index"), 0o700); err != nil {
		t.Fatal(err)
	}
	put(t, filepath.Join(folder, "index", "db.json"), read(t, "testdata/vulndb/index/db.json"))
	put(t, filepath.Join(folder, "index", "modules.json"), "[]")
	return "GOVULNDB=file://" + folder
}

// What is known is found, and a scan that could not happen is no scan that found nothing.
func TestVulncheck(t *testing.T) {
	t.Parallel()
	vulnerable, broken := copied(t, "vulnerable"), copied(t, "vulnerable")
	put(t, filepath.Join(broken, "main.go"), "package main\n\nfunc main() { nothing() }\n")
	const found, nowhere = "govulncheck modules=1 vulnerable=1 failed=0", "GOVULNDB=file:///nowhere/at/all"
	for name, c := range map[string]struct {
		variables []string
		module    string
		code      int
		says      []string
	}{
		"a known one": {
			// Whoever may be offline and is not is told all the same.
			[]string{database(t), "OFFLINE=1"}, vulnerable, 1, []string{"GO-2026-5970", "norm.Form.String", found},
		},
		"nothing is known": {
			[]string{emptyDatabase(t)}, vulnerable, 0, []string{"modules=1 vulnerable=0 failed=0"},
		},
		"a module that does not build": {[]string{database(t)}, broken, 1, []string{"vulnerable=0 failed=1"}},
		"no database": {
			[]string{nowhere}, vulnerable, 1, []string{"govulncheck failed reason=its database", "/nowhere/at/all"},
		},
		"no database, which is allowed": {
			[]string{nowhere, "OFFLINE=1"}, vulnerable, 0, []string{"govulncheck skipped reason=OFFLINE is set"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			code, said := run(t, c.variables, "scripts/vulncheck", c.module)
			if code != c.code {
				t.Errorf("exit code %d, want %d", code, c.code)
			}
			for _, want := range c.says {
				if !strings.Contains(said, want) {
					t.Errorf("it does not say %q", want)
				}
			}
			if t.Failed() {
				t.Log(said)
			}
		})
	}
}

// Those that require pgx, and nothing that requires a newer x/text. Inside the workspace their users' version is not
// seen. One of them is scanned: the other has x/text for its tests alone.
func TestUsersResolveWhatIsNotKnownToBeVulnerable(t *testing.T) {
	t.Parallel()
	code, said := run(t, []string{database(t)}, "scripts/vulncheck", "relay")
	if code != 0 || !strings.Contains(said, "govulncheck modules=1 vulnerable=0 failed=0") {
		t.Errorf("exit code %d\n%s", code, said)
	}
	for _, module := range []string{"relay", "telemetry/otel"} {
		if strings.Contains(read(t, filepath.Join(root, module, "go.mod")), "golang.org/x/text v0.29.0") {
			t.Errorf("%s requires a golang.org/x/text with GO-2026-5970, though its own code may not call it", module)
		}
	}
}

// CI may run where the database is out of reach. Then it says so; elsewhere nothing lets it pass.
func TestOnlyCIMayBeOffline(t *testing.T) {
	t.Parallel()
	if !strings.Contains(read(t, filepath.Join(root, ".ci/run")), " vulncheck 60 env OFFLINE=1 scripts/vulncheck\n") {
		t.Error(".ci/run does not print that it sets OFFLINE")
	}
	if strings.Contains(read(t, filepath.Join(root, "Makefile")), "OFFLINE") {
		t.Error("make vulncheck lets a scan pass that did not happen")
	}
}
