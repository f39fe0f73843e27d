package supply

import (
	"path/filepath"
	"strings"
	"testing"
)

// The file that goes with the programs has the licences of what is linked into them, and of nothing else.
func TestNotices(t *testing.T) {
	t.Parallel()
	if code, said := run(t, nil, "scripts/notices", "--check"); code != 0 {
		t.Errorf("exit code %d\n%s", code, said)
	}
	text := read(t, filepath.Join(root, "THIRD-PARTY-NOTICES"))
	for _, want := range []string{
		"The Go standard library", "github.com/jackc/pgx/v5 v", "github.com/nats-io/nats.go v", "github.com/spf13/cobra v",
		"go.opentelemetry.io/otel v", "golang.org/x/text v",
	} {
		if !strings.Contains(text, "\n"+want) {
			t.Errorf("there is nothing about %s", want)
		}
	}
	for _, not := range []string{"github.com/posthaste-dev", "go.uber.org/goleak", "github.com/pressly/goose"} {
		if strings.Contains(text, "\n"+not) {
			t.Errorf("%s is not linked into them", not)
		}
	}
}

// A check that lets an old file pass is none.
func TestOldNoticesAreSeen(t *testing.T) {
	t.Parallel()
	text := read(t, filepath.Join(root, "THIRD-PARTY-NOTICES"))
	first, _, _ := strings.Cut(text[strings.Index(text, "\ngithub.com/jackc/pgx/v5 ")+1:], "\n")
	old := filepath.Join(t.TempDir(), "notices")
	put(t, old, strings.Replace(text, first, "github.com/jackc/pgx/v5 v5.0.0", 1))
	code, said := run(t, nil, "scripts/notices", "--check", old)
	if code != 1 || !strings.Contains(said, "+"+first) || !strings.Contains(said, "run scripts/notices") {
		t.Errorf("exit code %d\n%s", code, said)
	}
}
