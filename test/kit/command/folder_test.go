package command_test

import (
	"fmt"
	"io"
	"os"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/command"
)

func TestAFolderStaysWhileSomebodyMayWantIt(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		ok, keep, stays bool
		err             error
	}{
		"all is well":                   {ok: true},
		"all is well, and it is wanted": {ok: true, keep: true, stays: true},
		"something was found":           {stays: true},
		"it could not run":              {ok: true, err: os.ErrInvalid, stays: true},
	} {
		var at string
		ok, err := command.InFolder("proof-of-this", "nothing", c.keep, func(folder string, report io.Writer) (bool, error) {
			at = folder
			_, _ = fmt.Fprintln(report, "proof-of-this case=1")
			return c.ok, c.err
		})
		_, missing := os.Stat(at)
		if ok != c.ok || (err == nil) != (c.err == nil) || (missing == nil) != c.stays {
			t.Errorf("%s: %v, %v; the folder: %v", name, ok, err, missing)
		}
		_ = os.RemoveAll(at)
	}
}

func TestSeed(t *testing.T) {
	t.Parallel()
	if command.Seed(7, true) != 7 || command.Seed(0, true) != 1 || command.Seed(0, false) == 1 {
		t.Error("a given seed counts, the short form has 1, and the long form another every time")
	}
}
