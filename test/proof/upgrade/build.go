package upgrade

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
)

// Programs are those of one side.
type Programs struct {
	// Publisher is outbox-publisher, Operator outboxctl, and Client test/cmd/upgrade-client.
	Publisher, Operator, Client string
}

// In are the programs in a folder.
func In(folder string) Programs {
	return Programs{
		Publisher: filepath.Join(folder, "outbox-publisher"), Operator: filepath.Join(folder, "outboxctl"),
		Client: filepath.Join(folder, clientName),
	}
}

const clientName = "upgrade-client"

// clientFolder has the source of the client; an old tree gets that of the working tree.
const clientFolder = "test/cmd/" + clientName

// Checkout writes the tree of a commit into a folder, with the client of the working tree in it.
func Checkout(ctx context.Context, root string, old Old, tree string) error {
	if err := os.MkdirAll(tree, 0o700); err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	archive := exec.CommandContext(ctx, "git", "-C", root, "archive", "--format=tar", old.Commit)
	unpack := exec.CommandContext(ctx, "tar", "-x", "-C", tree)
	reader, writer := io.Pipe()
	var said bytes.Buffer
	archive.Stdout, unpack.Stdin, archive.Stderr, unpack.Stderr = writer, reader, &said, &said
	if err := unpack.Start(); err != nil {
		return fmt.Errorf("upgrade: unpack %s: %w", old.Short(), err)
	}
	err := archive.Run()
	_ = writer.CloseWithError(err) // which ends the other one
	if err = errors.Join(err, unpack.Wait()); err != nil {
		return fmt.Errorf("upgrade: unpack %s: %w: %s", old.Short(), err, said.String())
	}
	client := filepath.Join(tree, clientFolder)
	if err := os.RemoveAll(client); err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	if err := os.CopyFS(client, os.DirFS(filepath.Join(root, clientFolder))); err != nil {
		return fmt.Errorf("upgrade: %w", err)
	}
	return nil
}

// Build builds the programs of a tree into a folder, in the workspace of that tree. Without paths in them most packages
// come from the build cache.
func Build(ctx context.Context, tree, folder string) (Programs, error) {
	build := exec.CommandContext(ctx, "go", "build", "-trimpath", "-buildvcs=false", "-ldflags=-s -w",
		"-o", folder+string(filepath.Separator), "./cmd/outbox-publisher", "./cmd/outboxctl", "./"+clientFolder)
	build.Dir, build.Env = tree, append(os.Environ(), "GOWORK=", "PWD="+tree)
	if said, err := build.CombinedOutput(); err != nil {
		return Programs{}, fmt.Errorf("upgrade: build the programs of %s; where it is %s, what users import has changed: "+
			"%w\n%s", tree, clientFolder, err, said)
	}
	return In(folder), nil
}
