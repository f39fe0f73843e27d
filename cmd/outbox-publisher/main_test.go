package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// docs/reference/configuration.md is what the command prints.
func TestTheReferencePage(t *testing.T) {
	t.Parallel()
	binary := filepath.Join(t.TempDir(), "outbox-publisher")
	if output, err := exec.CommandContext(t.Context(), "go", "build", "-o", binary, ".").CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	printed, err := exec.CommandContext(t.Context(), binary, "config", "docs").Output()
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("../../docs/reference/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	if string(printed) != string(page) {
		t.Error("docs/reference/configuration.md is not what it should be: " +
			"go run ./cmd/outbox-publisher config docs >docs/reference/configuration.md")
	}
}
