package main

import (
	"go/format"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"testing"
)

// TestInitWritesAModule whose files are formatted, and leaves what is there. That it compiles and works is shown by
// `make proof-quickstart`.
func TestInitWritesAModule(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "shop")
	code, stdout, stderr := call(t, nil, "init", folder)
	if code != exitDone || !strings.Contains(stdout, "wrote example.com/shop into "+folder) ||
		!strings.Contains(stdout, "go run -mod=mod ./cmd/relay") {
		t.Fatalf("exit code %d\n%s%s", code, stdout, stderr)
	}
	for _, name := range []string{
		"README.md", "go.mod", "events/events.go", "store/store.go", "mailer/mailer.go", "cmd/shop/main.go",
		"cmd/relay/main.go",
	} {
		text, err := os.ReadFile(filepath.Join(folder, name))
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "{{") || strings.Contains(string(text), "<no value>") {
			t.Errorf("%s is a template", name)
		}
		if formatted, err := format.Source(text); strings.HasSuffix(name, ".go") &&
			(err != nil || string(formatted) != string(text)) {
			t.Errorf("%s is not formatted: %v", name, err)
		}
		if name == "go.mod" && !strings.Contains(string(text), "\n\tgithub.com/posthaste-dev/posthaste/relay v0.0.0\n") {
			t.Errorf("go.mod:\n%s", text)
		}
	}
	if err := os.WriteFile(filepath.Join(folder, "go.mod"), []byte("mine"), 0o600); err != nil {
		t.Fatal(err)
	}
	code, _, stderr = call(t, nil, "init", folder, "--module", "github.com/acme/shop")
	mine, err := os.ReadFile(filepath.Join(folder, "go.mod"))
	if code != exitFailed || !strings.Contains(stderr, "there already") || err != nil || string(mine) != "mine" {
		t.Errorf("exit code %d, %s: %v\n%s", code, mine, err, stderr)
	}
	for _, module := range []string{"a b", "../x", `x"`, "/x"} {
		if code, _, stderr := call(t, nil, "init", t.TempDir(), "--module", module); code != exitUsage ||
			!strings.Contains(stderr, "cannot be the path of a module") {
			t.Errorf("%s: exit code %d\n%s", module, code, stderr)
		}
	}
}

// TestInitRequiresWhatItWasBuiltWith, where the build knows that.
func TestInitRequiresWhatItWasBuiltWith(t *testing.T) {
	t.Parallel()
	build := &debug.BuildInfo{Deps: []*debug.Module{
		{Path: pgxModule, Version: "v5.99.0"}, {Path: ourModule, Version: "(devel)"},
	}}
	if got := versionOf(build, pgxModule, "v1"); got != "v5.99.0" {
		t.Error(got)
	}
	if got := versionOf(build, ourModule, ourVersion) + versionOf(nil, ourModule, ourVersion); got != "v0.0.0v0.0.0" {
		t.Error(got)
	}
	text, err := os.ReadFile("../go.mod")
	if err != nil || !strings.Contains(string(text), "\n\t"+pgxModule+" "+pgxVersion+"\n") {
		t.Errorf("pgxVersion is not the one of cmd/go.mod: %v", err)
	}
}
