package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// movedCommands are commands that had another name.
var movedCommands = map[string]string{
	"redrive": "dead redrive", "discard": "dead discard", "reissue": "dead reissue", "edit": "dead edit",
	"redeliver": "replay start", "cancel": "replay cancel", "erase": "events erase",
}

// movedFlags are flags that have another name, by the command and the flag.
var movedFlags = map[string]string{
	"outboxctl pause --topic":  "'outboxctl topics pause TOPIC'",
	"outboxctl resume --topic": "'outboxctl topics resume TOPIC'",
}

// movedTo is the annotation of a command that had another name: how it is called now.
const movedTo = "moved to"

// addMoved adds commands that say where they are now. They read no flags: those they had would be called unknown, and
// nothing else would be said.
func addMoved(root *cobra.Command) {
	for name, now := range movedCommands {
		root.AddCommand(&cobra.Command{
			Use: name, Hidden: true, DisableFlagParsing: true, Annotations: map[string]string{movedTo: "outboxctl " + now},
			RunE: func(*cobra.Command, []string) error {
				return fmt.Errorf("unknown command %q for %q: it is 'outboxctl %s'", name, root.CommandPath(), now)
			},
		})
	}
}

// knownCommand says which commands are similar to one that there is not.
func knownCommand(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	err := fmt.Errorf("unknown command %.80q for %q", args[0], cmd.CommandPath())
	if similar := cmd.SuggestionsFor(args[0]); len(similar) > 0 {
		return fmt.Errorf("%w: is it '%s'?", err, strings.Join(similar, "' or '"))
	}
	return err
}

// movedFlag says what to write instead of a flag that there is not.
func movedFlag(cmd *cobra.Command, err error) error {
	name, unknown := strings.CutPrefix(err.Error(), "unknown flag: --")
	if !unknown {
		return err
	}
	if now := movedFlags[cmd.CommandPath()+" --"+name]; now != "" {
		return fmt.Errorf("%w: it is %s", err, now)
	}
	if name == "reason" && cmd.CommandPath() == "outboxctl replay plan" {
		return fmt.Errorf("%w: a plan changes nothing, and needs none", err)
	}
	if name == "count" && cmd.Flags().Lookup("max") != nil {
		return fmt.Errorf("%w: it is --max", err)
	}
	if strings.Contains(cmd.Use, "FILTER") && slices.Contains(operator.FilterFields(), name) {
		return fmt.Errorf("%w: it is a term of the filter, %s:VALUE", err, name)
	}
	return err
}
