package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// walk visits a command and all below it that people see, in the order of help.
func walk(cmd *cobra.Command, visit func(*cobra.Command)) {
	visit(cmd)
	for _, child := range cmd.Commands() {
		if child.IsAvailableCommand() && child.Name() != "help" {
			walk(child, visit)
		}
	}
}

// reference is the page of all commands, as their help has them.
func reference(root *cobra.Command) string {
	var page strings.Builder
	page.WriteString("# outboxctl\n\n<!-- Made by 'make cli-reference' from the commands' own help. -->\n\n")
	walk(root, func(cmd *cobra.Command) {
		if cmd != root {
			fmt.Fprintf(&page, "## %s\n\n", cmd.CommandPath())
		}
		about := cmd.Long
		if about == "" {
			about = cmd.Short + "."
		}
		fmt.Fprintf(&page, "```text\n%s\n```\n\n", strings.TrimSpace(about))
		if cmd.Runnable() && cmd != root {
			fmt.Fprintf(&page, "```text\n%s\n```\n\n", cmd.UseLine())
		}
		if cmd.HasExample() {
			fmt.Fprintf(&page, "```sh\n%s\n```\n\n", unindent(cmd.Example))
		}
		writeFlags(&page, cmd.NonInheritedFlags())
	})
	return strings.TrimRight(page.String(), "\n") + "\n"
}

func unindent(example string) string {
	lines := strings.Split(example, "\n")
	for i, line := range lines {
		lines[i] = strings.TrimPrefix(line, "  ")
	}
	return strings.Join(lines, "\n")
}

// writeFlags writes a table of flags.
func writeFlags(page *strings.Builder, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	page.WriteString("| flag | what it says | default |\n|---|---|---|\n")
	flags.VisitAll(func(flag *pflag.Flag) {
		if flag.Hidden || flag.Name == "help" {
			return
		}
		name := "--" + flag.Name
		if flag.Shorthand != "" {
			name = "-" + flag.Shorthand + ", " + name
		}
		initial := flag.DefValue
		if initial == "[]" || initial == "false" || initial == "" {
			initial = ""
		} else {
			initial = "`" + initial + "`"
		}
		fmt.Fprintf(page, "| `%s` | %s | %s |\n", name, strings.ReplaceAll(flag.Usage, "|", `\|`), initial)
	})
	page.WriteString("\n")
}
