package mutants

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"sync"
	"testing"
)

// Programs are commands of the repository that the tests of a package share, each built once. They have all mutants in
// them, and are none of them unless they are told to be.
type Programs struct {
	mutex  sync.Mutex
	folder string
	built  map[string]string
}

// Build builds a command, unless that has been done.
func (p *Programs) Build(t testing.TB, importPath string, tags ...string) (executable string) {
	t.Helper()
	p.mutex.Lock()
	defer p.mutex.Unlock()
	if executable = p.built[importPath]; executable != "" {
		return executable
	}
	if p.folder == "" {
		folder, err := os.MkdirTemp("", "test-programs-") //nolint:usetesting // several tests use it
		if err != nil {
			t.Fatal(err)
		}
		p.folder, p.built = folder, map[string]string{}
	}
	executable = filepath.Join(p.folder, path.Base(importPath))
	if err := Build(context.Background(), executable, importPath, tags...); err != nil {
		t.Fatal(err)
	}
	p.built[importPath] = executable
	return executable
}

// Remove removes what was built, when all tests have ended.
func (p *Programs) Remove() {
	if p.folder != "" {
		_ = os.RemoveAll(p.folder) // of no consequence
	}
}
