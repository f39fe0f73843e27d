package googleemulator_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/googleemulator"
)

func TestFind(t *testing.T) {
	jar := filepath.Join(t.TempDir(), "emulator.jar")
	t.Setenv(googleemulator.Variable, jar)
	_, err := googleemulator.Find(t.Context())
	if !errors.Is(err, os.ErrNotExist) || errors.Is(err, googleemulator.ErrNotInstalled) {
		t.Errorf("a jar that is not where the variable says is %v", err)
	}
	if err := os.WriteFile(jar, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	path := os.Getenv("PATH")
	t.Setenv("PATH", t.TempDir())
	for _, named := range []string{jar, ""} { // there is no java, and no dpkg
		t.Setenv(googleemulator.Variable, named)
		if _, err := googleemulator.Find(t.Context()); !errors.Is(err, googleemulator.ErrNotInstalled) {
			t.Errorf("without programs: %v", err)
		}
	}
	t.Setenv("PATH", path)
	found, err := googleemulator.Find(t.Context())
	switch {
	case errors.Is(err, googleemulator.ErrNotInstalled):
		if !strings.Contains(err.Error(), googleemulator.Variable) {
			t.Errorf("%v does not say what to do", err)
		}
	case err != nil || !strings.HasSuffix(found, ".jar"):
		t.Errorf("found %q, %v", found, err)
	}
}
