package main

import (
	"context"
	"runtime"
	"runtime/debug"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/schema"
)

// versionReport is what this program is.
type versionReport struct {
	Version  string `json:"version"`
	Revision string `json:"revision,omitempty"`
	Go       string `json:"go"`
	Schema   int64  `json:"schema"`
}

// newVersion says what this program is.
func newVersion(root *rootCommand) *cobra.Command {
	return root.show(&cobra.Command{
		Use:     "version",
		Short:   "Say which version this is, and up to which migration it knows the tables",
		Example: "  outboxctl version\n  outboxctl version -o json",
		Args:    cobra.NoArgs,
	}, func(_ context.Context, p *present.Printer) error {
		migrations, err := schema.Outbox.Migrations()
		if err != nil {
			return err
		}
		report := versionReport{Version: "unknown", Go: runtime.Version(), Schema: migrations[len(migrations)-1].Version}
		if build, ok := debug.ReadBuildInfo(); ok {
			report.Version = build.Main.Version
			for _, setting := range build.Settings {
				if setting.Key == "vcs.revision" {
					report.Revision = setting.Value
				}
			}
		}
		return p.One(report, func() []string {
			line := "outboxctl " + p.Paint(present.Bold, report.Version)
			if report.Revision != "" {
				line += " (" + p.Paint(present.Plain, report.Revision) + ")"
			}
			line += ", " + report.Go + ", tables up to migration "
			return []string{line + p.Paint(present.Bold, strconv.FormatInt(report.Schema, 10))}
		})
	})
}
