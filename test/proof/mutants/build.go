package mutants

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// variable is the environment variable that names the mutant a process is to be.
const variable = "POSTHASTE_MUTANT"

// Chosen is the setting of the environment that makes a process this mutant; it panics if there is none.
func Chosen(name string) string {
	for _, m := range all() {
		if m.name == name {
			return variable + "=" + name
		}
	}
	panic("mutants: there is no mutant " + name)
}

// Build builds a program of the repository with all mutants in it. It behaves as the product does while none is chosen.
func Build(ctx context.Context, program, ofPackage string, tags ...string) (err error) {
	folder, err := os.MkdirTemp("", "mutants-")
	if err != nil {
		return fmt.Errorf("mutants: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	root, err := rootFolder(ctx)
	if err != nil {
		return err
	}
	list, err := overlayOfAll(root, folder)
	if err != nil {
		return err
	}
	return goCommand(ctx, root, "build", "-tags", strings.Join(tags, ","), "-overlay", list, "-o", program, ofPackage)
}

// overlayOfAll puts the changed files of all mutants into a folder, with the list of them that the go command takes.
func overlayOfAll(root, folder string) (list string, err error) {
	changed, err := overlay(root, all(), loaders())
	if err != nil {
		return "", err
	}
	return writeOverlay(root, folder, changed)
}

func goCommand(ctx context.Context, root string, args ...string) error {
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir = root
	if text, err := command.CombinedOutput(); err != nil {
		return fmt.Errorf("mutants: %s: %w\n%s", command, err, text)
	}
	return nil
}

// rootFolder is where the workspace is.
func rootFolder(ctx context.Context) (string, error) {
	text, err := exec.CommandContext(ctx, "go", "env", "GOWORK").Output()
	if err != nil {
		return "", fmt.Errorf("mutants: go env GOWORK: %w", err)
	}
	file := strings.TrimSpace(string(text))
	if file == "" || file == "off" {
		return "", errors.New("mutants: there is no go.work here: run it inside the repository")
	}
	return filepath.Dir(file), nil
}
