package supply

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

const root = "../../.."

// run starts a program of the repository, in its root, with these variables on top of the environment, and tells its
// exit code and all that it said.
func run(t *testing.T, variables []string, program string, args ...string) (code int, said string) {
	t.Helper()
	command := exec.CommandContext(t.Context(), program, args...)
	command.Dir = root
	command.Env = append(slices.DeleteFunc(os.Environ(), func(line string) bool {
		return strings.HasPrefix(line, "OFFLINE=") || strings.HasPrefix(line, "GOVULNDB=")
	}), variables...)
	output, err := command.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatalf("%s: %v", program, err)
	}
	return command.ProcessState.ExitCode(), string(output)
}

// copied writes the files of a folder in testdata to a new one. Their names end with .txt there, so that the go command
// does not take them for a module of this repository.
func copied(t *testing.T, folder string) string {
	t.Helper()
	to := t.TempDir()
	names, err := filepath.Glob(filepath.Join("testdata", folder, "*.txt"))
	if err != nil || len(names) == 0 {
		t.Fatalf("testdata/%s: %d files, %v", folder, len(names), err)
	}
	for _, name := range names {
		put(t, filepath.Join(to, strings.TrimSuffix(filepath.Base(name), ".txt")), read(t, name))
	}
	return to
}

func read(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func put(t *testing.T, name, text string) {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// here is a path of this folder for a program that runs elsewhere.
func here(t *testing.T, name string) string {
	t.Helper()
	absolute, err := filepath.Abs(name)
	if err != nil {
		t.Fatal(err)
	}
	return absolute
}
