package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"regexp"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/scaffold"
)

// What a module requires where the build does not know its own versions.
const (
	ourModule  = "github.com/posthaste-dev/posthaste"
	ourVersion = "v0.0.0"
	pgxModule  = "github.com/jackc/pgx/v5"
	pgxVersion = "v5.11.0"
)

// moduleName is what the path of a module may be.
var moduleName = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._~-]*(/[A-Za-z0-9][A-Za-z0-9._~-]*)*$`)

// initCommand writes a module to begin with.
type initCommand struct {
	root           *rootCommand
	folder, module string
}

// initReport is what was written.
type initReport struct {
	Folder string   `json:"folder"`
	Module string   `json:"module"`
	Files  []string `json:"files"`
}

func newInit(root *rootCommand) *cobra.Command {
	c := &initCommand{root: root}
	cmd := &cobra.Command{
		Use:   "init DIR",
		Short: "Write a Go module to begin with: contracts, a producer, a relay, a consumer",
		Long: `Write a Go module to begin with, which compiles and works: the contracts of its events, a producer that emits
in the transaction of its business change, a relay, and a consumer with an inbox. Its README has the commands that run
it.

No file that is there already is changed: then nothing is written.`,
		Example: `  outboxctl init shop
  outboxctl init . --module github.com/acme/shop`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("init takes one folder, got %d arguments", len(args))
			}
			c.folder = args[0]
			return nil
		},
	}
	cmd.Flags().StringVar(&c.module, "module", "", "the module's path (default example.com/ and the folder's name)")
	return root.show(cmd, c.run)
}

func (c *initCommand) run(_ context.Context, p *present.Printer) error {
	folder, err := filepath.Abs(c.folder)
	if err != nil {
		return fmt.Errorf("init: %w", err)
	}
	names := scaffold.Names{Module: cmp.Or(c.module, "example.com/"+filepath.Base(folder))}
	if !moduleName.MatchString(names.Module) {
		return usageError{fmt.Sprintf("%.80q cannot be the path of a module: give one with --module", names.Module)}
	}
	build, _ := debug.ReadBuildInfo()
	names.Posthaste, names.Pgx = versionOf(build, ourModule, ourVersion), versionOf(build, pgxModule, pgxVersion)
	files, err := scaffold.Write(folder, names)
	if exists := (*scaffold.ExistsError)(nil); errors.As(err, &exists) {
		return problem{code: "exists", exit: exitFailed, err: err, hint: "name another folder, or move them away"}
	}
	if err != nil {
		return err
	}
	return p.One(initReport{Folder: folder, Module: names.Module, Files: files}, func() []string {
		lines := []string{"wrote " + p.Paint(present.Bold, names.Module) + " into " + p.Paint(present.Plain, folder) + ":"}
		for _, file := range files {
			lines = append(lines, "  "+p.Paint(present.Plain, file))
		}
		return append(lines, "", "Next, with DATABASE_URL set:", "",
			"  cd "+shellQuoted(c.folder)+" && go run -mod=mod ./cmd/relay    # in one terminal",
			"  cd "+shellQuoted(c.folder)+" && go run ./cmd/shop              # in another one")
	})
}

// versionOf is the version of a module that this program was built with.
func versionOf(build *debug.BuildInfo, module, otherwise string) string {
	if build == nil {
		return otherwise
	}
	for _, dependency := range build.Deps {
		if dependency.Path == module && dependency.Replace == nil &&
			strings.HasPrefix(dependency.Version, "v") { // and not "(devel)"
			return dependency.Version
		}
	}
	return otherwise
}
