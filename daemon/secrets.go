package daemon

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/daemon/internal/input"
)

// maxSecretBytes bounds a file that holds one secret.
const maxSecretBytes = 64 << 10

// ReadSecret reads a file that holds one secret, without the line break at its end, and tells whether every user of the
// machine can read it too. Programs beside a publisher read theirs the same way.
func ReadSecret(file string) (secret string, everybody bool, err error) {
	text, err := input.ReadFile(file, maxSecretBytes)
	if err != nil {
		return "", false, err
	}
	return strings.TrimRight(string(text), "\r\n"), readByAll(file), nil
}

// readByAll tells whether everybody can read a file. One that is not there can be read by nobody.
func readByAll(file string) bool {
	info, err := os.Stat(file)
	return err == nil && info.Mode().Perm()&0o004 != 0
}

// warnOfReadable names the files with secrets that every user of the machine can read.
func (p *publisher) warnOfReadable(ctx context.Context) {
	files := p.values.SecretFiles()
	for _, broker := range p.brokers() {
		for _, key := range broker.SecretFiles {
			files[key.Name()] = key.Get(p.values)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if readByAll(files[name]) {
			p.logger.WarnContext(ctx, "every user of this machine can read a file that holds a secret: chmod o= it",
				slog.String("key", name), slog.String("file", files[name]))
		}
	}
}
