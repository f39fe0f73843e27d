package drivers_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestCompilerRejectsPools builds one small package per case in testdata: whatever is not a transaction
// must not compile, for the reason that it has no Commit; the same call with a transaction must, or the
// refusal would prove nothing.
func TestCompilerRejectsPools(t *testing.T) {
	t.Parallel()
	for _, dir := range compileCases(t, "refused") {
		t.Run("refused/"+filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			output, err := goBuild(t, dir)
			if err == nil {
				t.Fatal("it compiles")
			}
			if !strings.Contains(output, "missing method Commit") && !strings.Contains(output, "wrong type for method Commit") {
				t.Errorf("the compiler refuses for another reason:\n%s", output)
			}
			if errors := strings.Count(output, ".go:"); errors != 1 {
				t.Errorf("%d errors, want 1:\n%s", errors, output)
			}
		})
	}
	for _, dir := range compileCases(t, "accepted") {
		t.Run("accepted/"+filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			if output, err := goBuild(t, dir); err != nil {
				t.Errorf("%v\n%s", err, output)
			}
		})
	}
}

func compileCases(t *testing.T, kind string) []string {
	t.Helper()
	dirs, err := filepath.Glob(filepath.Join("testdata", "compile", kind, "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no cases (%v)", err)
	}
	return dirs
}

// goBuild compiles a package, keeps nothing, and returns what the compiler says.
func goBuild(t *testing.T, dir string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "build", "-gcflags=-e", "./"+filepath.ToSlash(dir))
	command.Env = append(os.Environ(), "LC_ALL=C")
	output, err := command.CombinedOutput()
	return string(output), err
}
