package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// registryDiff compares two registries.
type registryDiff struct {
	source *registrySource
	files  []string
	sides  string
}

func newRegistryDiff(root *rootCommand) *cobra.Command {
	c := &registryDiff{source: &registrySource{root: root}}
	cmd := root.show(&cobra.Command{
		Use:   "diff OLD NEW",
		Short: "Say what changes from one registry to another, and for whom that breaks something",
		Long: `Say what changes from one registry to another: two files of contracts, or exports. A change breaks producers if
something that was good is rejected now: a type is gone, a field became required, an enum or a limit narrower, an object
closed. It breaks consumers if something may arrive that could not before, or no longer arrives where they look: another
topic, a field removed or no longer required, a type or an enum wider. New types break nobody, nor do titles,
descriptions, fields that are let through, and new fields where fields without a name had no rules of their own.

What cannot be compared keyword by keyword (anyOf, if, patterns, ...) counts as breaking both if it has changed.
docs/guide/contracts.md lists all kinds of changes.

The exit code is 1 if a change breaks somebody: with --for, somebody of that side.`,
		Example: "  outboxctl registry diff contracts.json registry.yaml\n" +
			"  outboxctl registry diff old.json new.json --for producers -o json",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 2 {
				return usageError{"name two files of contracts: the old one and the new one"}
			}
			c.files = args
			return nil
		},
		ValidArgsFunction: func(_ *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
			if len(args) >= 2 {
				return nil, cobra.ShellCompDirectiveNoFileComp
			}
			return nil, cobra.ShellCompDirectiveDefault
		},
	}, c.run)
	c.source.topicFlag(cmd)
	cmd.Flags().StringVar(&c.sides, "for", "both", "for whom a change must break nothing: producers, consumers or both")
	// It fails for a flag that is not there.
	_ = cmd.RegisterFlagCompletionFunc("for", cobra.FixedCompletions([]string{"producers", "consumers", "both"},
		cobra.ShellCompDirectiveNoFileComp))
	return cmd
}

func (c *registryDiff) run(_ context.Context, p *present.Printer) error {
	side := contracts.Side(c.sides)
	switch side {
	case contracts.Producers, contracts.Consumers, contracts.Both:
	default:
		return usageError{fmt.Sprintf("--for %.20q is none of producers, consumers and both", c.sides)}
	}
	before, err := loadContracts(c.files[0], c.source.defaultTopic)
	if err != nil {
		return err
	}
	after, err := loadContracts(c.files[1], c.source.defaultTopic)
	if err != nil {
		return err
	}
	changes := contracts.Diff(before, after)
	if err := showChanges(p, changes); err != nil {
		return err
	}
	breaking := contracts.Breaking(changes, side)
	if len(breaking) == 0 {
		return nil
	}
	return problem{
		code: "breaking_changes", exit: exitFailed,
		err:  errors.New(plural(len(breaking), "change breaks somebody", "changes break somebody")),
		hint: "a payload that breaks its readers is a new type; the old one stays until nobody reads it",
	}
}

func showChanges(p *present.Printer, changes []contracts.Change) error {
	type row = contracts.Change
	return present.List(p, changes, "nothing changes",
		present.Column[row]{Name: "BREAKS", Of: func(c row) string {
			if c.Breaks == contracts.Nobody {
				return "nobody"
			}
			return string(c.Breaks)
		}, Style: func(c row) present.Style {
			if c.Breaks == contracts.Nobody {
				return present.Good
			}
			return present.Bad
		}},
		present.Column[row]{Name: "TYPE", Of: func(c row) string { return cut(c.Type, 48) }},
		present.Column[row]{Name: "FIELD", Of: func(c row) string { return cut(c.Field, 60) }, Optional: true},
		present.Column[row]{Name: "CHANGE", Of: func(c row) string { return c.Kind }},
		present.Column[row]{Name: "WHAT", Of: func(c row) string { return cut(c.Text, 100) }})
}
