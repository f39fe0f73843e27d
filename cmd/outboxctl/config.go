package main

import (
	"context"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/internal/program"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
)

// configRow is a key of outbox-publisher.
type configRow struct {
	Key    string `json:"key"`
	Value  string `json:"value"`
	Source string `json:"source"`
}

// newConfig shows how outbox-publisher would be configured.
func newConfig(root *rootCommand) *cobra.Command {
	var file string
	var flags []string
	cmd := root.show(&cobra.Command{
		Use:   "config [-- FLAG...]",
		Short: "Show and check the configuration of outbox-publisher, key by key, with where each value comes from",
		Long: `Show every key of outbox-publisher with its value and where that came from (a flag, the environment, the
file, the default), as outbox-publisher would read them here. Secrets are not shown. What stands behind -- are flags
of outbox-publisher.

Where it would not start with them, everything that is wrong is told at once, and the exit code is 1. It asks no server:
'outboxctl doctor --config FILE' does that. docs/reference/configuration.md has all keys.`,
		Example: "  outboxctl config\n  outboxctl config --config publisher.yaml\n  outboxctl config -o json -- " +
			"--relay-batch=100",
		Args: func(_ *cobra.Command, args []string) error {
			flags = args
			return nil
		},
	}, func(_ context.Context, p *present.Printer) error {
		values, err := program.New("").Configuration(publisherFlags(file, flags), root.publisherEnvironment())
		if err != nil {
			return notConfigured(err)
		}
		rows := []configRow{}
		for _, row := range values.Rows() {
			rows = append(rows, configRow{row.Name, row.Value, row.Source})
		}
		return present.List(p, rows, "",
			present.Column[configRow]{Name: "KEY", Of: func(r configRow) string { return r.Key }},
			present.Column[configRow]{Name: "VALUE", Of: func(r configRow) string { return r.Value }},
			present.Column[configRow]{Name: "FROM", Of: func(r configRow) string { return r.Source }})
	})
	cmd.Flags().StringVar(&file, "config", "", "the configuration file")
	return cmd
}

// publisherFlags are the flags of outbox-publisher.
func publisherFlags(file string, others []string) []string {
	if file == "" {
		return others
	}
	return append([]string{"--config=" + file}, others...)
}

// ownVariables are those of outboxctl alone: outbox-publisher refuses what begins like its own and is not.
var ownVariables = []string{"POSTHASTE_REDIS_URL", "POSTHASTE_REDIS_URL_FILE"}

// publisherEnvironment is what outbox-publisher would find here.
func (c *rootCommand) publisherEnvironment() []string {
	return slices.DeleteFunc(c.environ(), func(entry string) bool {
		name, _, _ := strings.Cut(entry, "=")
		return slices.Contains(ownVariables, name)
	})
}

// notConfigured tells an error of the configuration.
func notConfigured(err error) error {
	if invalid := (*config.Error)(nil); errors.As(err, &invalid) {
		return problem{
			code: "invalid_configuration", exit: exitFailed, err: err,
			hint: "docs/reference/configuration.md has every key",
		}
	}
	return err
}

// publisherConfiguration is the configuration of outbox-publisher for whoever asks its broker. One that lacks the
// database alone is completed: outboxctl was told the database in another way. given: there is one at all.
func (c *rootCommand) publisherConfiguration(file string) (environ, args []string, given bool, err error) {
	environ, args = c.publisherEnvironment(), publisherFlags(file, nil)
	if file == "" && c.getenv("POSTHASTE_CONFIG") == "" && c.getenv("POSTHASTE_BROKER") == "" {
		return nil, nil, false, nil
	}
	values, err := program.New("").Configuration(args, environ)
	if err == nil {
		url, schema := daemon.Database(values)
		c.configured = url.Reveal()
		if c.schema == "public" {
			c.schema = schema
		}
		return environ, args, true, nil
	}
	invalid := (*config.Error)(nil)
	if !errors.As(err, &invalid) || slices.ContainsFunc(invalid.Problems, func(p config.Problem) bool {
		return p.Key != "database.url"
	}) {
		return environ, args, true, err
	}
	address, unknown := c.address()
	if unknown != nil || address == "" {
		return environ, args, true, err
	}
	environ = append(environ, "POSTHASTE_DATABASE_URL="+address)
	allowed := slices.DeleteFunc(slices.Clone(c.insecureAllow), func(name string) bool { return name == allowRedis })
	if len(allowed) > 0 && c.getenv("POSTHASTE_INSECURE_ALLOW") == "" {
		environ = append(environ, "POSTHASTE_INSECURE_ALLOW="+strings.Join(allowed, ","))
	}
	_, err = program.New("").Configuration(args, environ)
	return environ, args, true, err
}
