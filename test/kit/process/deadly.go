package process

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
)

// BuildDeadly builds a command of the repository into a folder, so that it can be told to die at a crash point.
func BuildDeadly(ctx context.Context, folder, importPath string) (executable string, err error) {
	executable = filepath.Join(folder, path.Base(importPath))
	text, err := exec.CommandContext(ctx, "go", "build", "-tags", "crash", "-o", executable, importPath).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("process: build with the tag crash: %w: %s", err, text)
	}
	return executable, nil
}

// Child is one process of a proof's own program, which may be told where to die.
type Child struct {
	Executable  string
	Folder      string   // of what it is told and what it says
	Name        string   // no other life has it
	Told        any      // as JSON; see [Told]
	Point       string   // as POSTHASTE_CRASH has it; empty: nowhere
	Death       string   // the file that tells that it died there
	Environment []string // is added to what this process has
}

// Start begins the life: the program is called with the arguments "live" and the file of what it is told.
func (l Child) Start() (*Process, error) {
	text, err := json.Marshal(l.Told)
	if err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	file := filepath.Join(l.Folder, l.Name+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return nil, fmt.Errorf("process: %w", err)
	}
	environment := append(os.Environ(), "POSTHASTE_CRASH="+l.Point, "POSTHASTE_CRASH_FILE="+l.Death)
	return Start(Command{
		Program: l.Executable, Args: []string{"live", file}, Environment: append(environment, l.Environment...),
		Log: filepath.Join(l.Folder, l.Name+".log"), Input: true,
	})
}

// Told reads what a process was told.
func Told(file string, into any) error {
	text, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		return fmt.Errorf("process: what the process is told: %w", err)
	}
	return nil
}
