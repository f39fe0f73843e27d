package crash

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/crash"
)

const pointsPackage = "posthaste/internal/crash."

// found lists what of package internal/crash is in a program: its symbols, and the names of its points.
func found(t *testing.T, tags string) (list []string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "uses")
	if text, err := exec.CommandContext(t.Context(), "go", "build", "-tags", tags, "-o", file,
		"./testdata/uses").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	symbols, err := exec.CommandContext(t.Context(), "go", "tool", "nm", file).Output()
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(symbols)) {
		if strings.Contains(line, pointsPackage) {
			list = append(list, strings.TrimSpace(line))
		}
	}
	program, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range crash.List() {
		if bytes.Contains(program, []byte(d.Name)) {
			list = append(list, d.Name)
		}
	}
	if bytes.Contains(program, []byte("POSTHASTE_CRASH")) {
		list = append(list, "POSTHASTE_CRASH")
	}
	return list
}

// What is there for tests must cost users nothing.
func TestAProgramOfAUserHasNoPoints(t *testing.T) {
	t.Parallel()
	if list := found(t, ""); len(list) > 0 {
		t.Errorf("without the tag the program has %q", list)
	}
	list := found(t, "crash")
	for _, d := range crash.List() {
		if !slices.Contains(list, d.Name) {
			t.Errorf("with the tag the program has no %s", d.Name)
		}
	}
	if !slices.ContainsFunc(list, func(name string) bool { return strings.Contains(name, pointsPackage+"Point") }) {
		t.Errorf("with the tag the program has no function Point: %q", list)
	}
}
