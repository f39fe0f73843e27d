package quickstart

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"
)

// A Session is a terminal that stays open: what was typed before counts, as folders, variables and jobs do. A command
// that fails ends it.
type Session struct {
	*Running
	scripts string // the folder of what was typed
	keys    io.WriteCloser
	typed   int
	from    int // where what the last block showed begins
}

// The shell that is typed into ends with a command that failed. The one around it stays until the session is closed, so
// that the number of the group that is killed then is not somebody else's.
const (
	ended  = "--- it has ended ---"
	inside = `bash -e -o pipefail; printf '\n%s\n' '` + ended + `'; cat >/dev/null`
)

// Open opens one, and keeps what is typed in a folder.
func (t Terminal) Open(ctx context.Context, scripts string) (*Session, error) {
	if err := os.MkdirAll(scripts, 0o700); err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	read, keys, err := os.Pipe()
	if err != nil {
		return nil, fmt.Errorf("quickstart: %w", err)
	}
	running, err := t.start(ctx, "bash", read, "-c", inside)
	_ = read.Close() // bash has its own
	if err != nil {
		_ = keys.Close()
		return nil, err
	}
	return &Session{Running: running, scripts: scripts, keys: keys}, nil
}

// Type types a block and waits until it has ended.
func (s *Session) Type(ctx context.Context, block string, patience time.Duration) error {
	s.typed++
	s.from = len(s.Shown())
	name := filepath.Join(s.scripts, fmt.Sprintf("typed-%d", s.typed))
	if err := os.WriteFile(name, []byte(block), 0o600); err != nil {
		return fmt.Errorf("quickstart: %w", err)
	}
	_, _ = fmt.Fprintf(s.log, "$ %s", block)
	mark := fmt.Sprintf("--- typed %d ---", s.typed)
	if _, err := fmt.Fprintf(s.keys, ". '%s' </dev/null\nprintf '\\n%%s\\n' '%s'\n", name, mark); err != nil {
		return fmt.Errorf("the terminal is closed: %w", err)
	}
	if err := s.Await(ctx, regexp.MustCompile(`(?m)^(`+mark+`|`+ended+`)$`), patience); err != nil {
		return err
	}
	if strings.Contains(s.Shown()[s.from:], ended) {
		return errFailed
	}
	return nil
}

var errFailed = errors.New("a command of it failed")

var markPattern = regexp.MustCompile(`(?m)^(--- typed \d+ ---|` + ended + `)\n`)

// Last is what was shown since the last block was typed.
func (s *Session) Last() string { return markPattern.ReplaceAllString(s.Shown()[s.from:], "") }

// Close ends it with everything that it has left behind.
func (s *Session) Close() {
	_ = s.keys.Close()
	s.kill()
}
