package input_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon/internal/input"
)

func TestReadFileHasLimits(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	name := filepath.Join(dir, "a")
	if err := os.WriteFile(name, []byte("12345"), 0o600); err != nil {
		t.Fatal(err)
	}
	if text, err := input.ReadFile(name, 5); err != nil || string(text) != "12345" {
		t.Errorf("got %q, %v", text, err)
	}
	for path, want := range map[string]string{
		name: "more than 4 bytes", dir: "not a regular file", dir + "/b": "no such file", "/dev/zero": "not a regular file",
	} {
		if _, err := input.ReadFile(path, 4); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", path, err, want)
		}
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer root.Close()
	if text, err := input.ReadIn(root, "a", 5); err != nil || string(text) != "12345" {
		t.Errorf("got %q, %v", text, err)
	}
	if _, err := input.ReadIn(root, "../a", 5); err == nil {
		t.Error("the folder was left")
	}
}

func TestYAMLOfJSONKeepsLinesAndMeaning(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		`{"a": "b\/c"}`:               `{"a": "b/c"}`,
		`{"a": "\ud83d\ude00\n\""}`:   `{"a": "😀\n\""}`,
		`{"a": "\\ud83d\\ude00 \\/"}`: `{"a": "\\ud83d\\ude00 \\/"}`,
		"{\n\t\"a\": 1\n}":            "{\n\t\"a\": 1\n}",
		`a: "\/"`:                     `a: "\/"`, // not JSON
	} {
		if got := string(input.YAMLOfJSON([]byte(text))); got != want {
			t.Errorf("%s: got %s, want %s", text, got, want)
		}
	}
}

func TestParseYAMLTellsAllProblems(t *testing.T) {
	t.Parallel()
	_, problems := input.ParseYAML([]byte("a: 1\na: 2\nb: &x 3\nc: !!int 4\n---\nd: 5\n"))
	lines := make([]int, 0, len(problems))
	for _, problem := range problems {
		lines = append(lines, problem.Line)
	}
	if len(lines) != 4 || lines[0] != 2 || lines[1] != 3 || lines[2] != 4 || lines[3] != 5 {
		t.Errorf("got %+v", problems)
	}
	for _, empty := range []string{"", "# nothing\n", "---\n", "~"} {
		if root, problems := input.ParseYAML([]byte(empty)); root != nil || len(problems) != 0 {
			t.Errorf("%q: got %v, %+v", empty, root, problems)
		}
	}
}
