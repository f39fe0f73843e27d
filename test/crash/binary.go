package crash

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"strings"
)

// command is the program whose processes die: the proof itself, built so that points are deadly.
const command = "github.com/posthaste-dev/posthaste/test/cmd/proof-crash"

// Build builds the program with the tag crash, and others, into a folder.
func Build(ctx context.Context, folder string, tags ...string) (executable string, err error) {
	executable = filepath.Join(folder, "proof-crash")
	text, err := exec.CommandContext(ctx, "go", "build", "-tags", strings.Join(append([]string{"crash"}, tags...), ","), "-o", executable, command).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("crash: build with the tag: %w: %s", err, text)
	}
	return executable, nil
}
