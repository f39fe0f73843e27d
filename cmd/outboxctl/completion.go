package main

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// completionTimeout is how long a person who has pressed the tab key waits for the database.
const completionTimeout = 2 * time.Second

var shells = []string{"bash", "zsh", "fish", "powershell"}

func newCompletion() *cobra.Command {
	var shell string
	cmd := &cobra.Command{
		Use:   "completion bash|zsh|fish|powershell",
		Short: "Print the script with which a shell completes the commands",
		Long: `Print the script with which a shell completes commands, flags and their values: output formats, parts,
filters with their fields and states. Event types and topics are those that relays know; they are asked for where the
environment or a flag names the database, with the viewer role and for two seconds at most. Ids are not completed.

bash needs the package bash-completion; zsh needs 'autoload -U compinit; compinit' in ~/.zshrc. Each line below is for
the shell that it names, and counts from its next start on.`,
		Example: `  outboxctl completion bash >~/.local/share/bash-completion/completions/outboxctl
  outboxctl completion zsh >"${fpath[1]}/_outboxctl"
  outboxctl completion fish >~/.config/fish/completions/outboxctl.fish
  outboxctl completion powershell >>$PROFILE`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 || !slices.Contains(shells, args[0]) {
				return fmt.Errorf("completion takes one shell: %s", strings.Join(shells, ", "))
			}
			shell = args[0]
			return nil
		},
	}
	cmd.RunE = run(func(_ context.Context, out io.Writer) error {
		var err error
		switch shell {
		case "bash":
			err = cmd.Root().GenBashCompletionV2(out, true)
		case "zsh":
			err = cmd.Root().GenZshCompletion(out)
		case "fish":
			err = cmd.Root().GenFishCompletion(out, true)
		default:
			err = cmd.Root().GenPowerShellCompletionWithDesc(out)
		}
		if err != nil {
			return fmt.Errorf("print: %w", err)
		}
		return nil
	})
	takes(cmd, only(shells...))
	return cmd
}

// values are what may stand somewhere, of which a person has written the beginning.
type values func(ctx context.Context, begun string) []string

func only(words ...string) values {
	return func(context.Context, string) []string { return words }
}

// takes says what the first argument of a command may be, or all if it takes any number.
func takes(cmd *cobra.Command, from values) {
	cmd.ValidArgsFunction = func(c *cobra.Command, args []string, begun string) ([]string, cobra.ShellCompDirective) {
		if len(args) > 0 && !strings.Contains(c.Use, "...") {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return complete(c, from, begun)
	}
}

// complete offers the values that go on as it was begun; nil: nothing is known. One that ends with a colon goes on
// itself.
func complete(cmd *cobra.Command, from values, begun string) (words []string, how cobra.ShellCompDirective) {
	how = cobra.ShellCompDirectiveNoFileComp
	if from == nil {
		return nil, how
	}
	for _, word := range from(cmd.Context(), begun) {
		if word == clean.Line(word) && strings.HasPrefix(word, begun) {
			words = append(words, word)
			if strings.HasSuffix(word, ":") {
				how |= cobra.ShellCompDirectiveNoSpace
			}
		}
	}
	return words, how
}

// completeAll says of all commands what may stand where. A flag has one meaning, whichever command has it; those that
// name a file are left to the shell, and nothing is known of the others.
func (c *rootCommand) completeAll(root *cobra.Command) {
	flags := map[string]values{
		"output": only("table", "json", "ndjson"), "format": only("nagios", "prometheus", "json"),
		"broker": only("nats", "pubsub"), "insecure-allow": only("database", "nats", "pubsub", "redis"),
		"part": only(parts...), "type": c.knownTypes, "topic": c.knownTopics,
	}
	files := []string{"config", "registry", "database-url-file"}
	arguments := map[string]values{
		"emit": c.knownTypes, "listen": c.knownTopics, "grant": only(slices.Concat(parts, inboxParts[:1])...),
		"list": c.filterTerms, "tail": c.filterTerms, "export": c.filterTerms,
		"add": only("published", "type"), "drop": only("published", "type"),
	}
	walk(root, func(cmd *cobra.Command) {
		if cmd.HasParent() && cmd.Parent().Name() == "topics" {
			takes(cmd, c.knownTopics)
		}
		if cmd.ValidArgsFunction == nil && cmd.Name() != "init" && cmd.Name() != "config" { // these take files
			takes(cmd, arguments[cmd.Name()])
		}
		cmd.NonInheritedFlags().VisitAll(func(flag *pflag.Flag) {
			if flag.NoOptDefVal != "" || slices.Contains(files, flag.Name) {
				return
			}
			// It fails for a flag that is not there, and for one that has it already.
			_ = cmd.RegisterFlagCompletionFunc(flag.Name, func(cmd *cobra.Command, _ []string, begun string) (
				[]string, cobra.ShellCompDirective,
			) {
				return complete(cmd, flags[flag.Name], begun)
			})
		})
	})
}

// filterTerms are the fields of a filter, and what is known of the values of the one that was begun.
func (c *rootCommand) filterTerms(ctx context.Context, begun string) (terms []string) {
	field, value, named := strings.Cut(begun, ":")
	if !named {
		for _, name := range operator.FilterFields() {
			terms = append(terms, name+":")
		}
		return terms
	}
	before := field + ":" + value[:strings.LastIndex(value, ",")+1]
	var words []string
	switch field {
	case "state":
		words = operator.FilterStates()
	case "type":
		words = c.knownTypes(ctx, "")
	case "topic":
		words = c.knownTopics(ctx, "")
	}
	for _, word := range words {
		terms = append(terms, before+word)
	}
	return terms
}

func (c *rootCommand) knownTypes(ctx context.Context, _ string) (types []string) {
	for _, topic := range c.known(ctx) {
		for _, eventType := range topic.Types {
			types = append(types, eventType.Name)
		}
	}
	slices.Sort(types)
	return slices.Compact(types)
}

func (c *rootCommand) knownTopics(ctx context.Context, _ string) (topics []string) {
	for _, topic := range c.known(ctx) {
		topics = append(topics, topic.Name)
	}
	return topics
}

// known is what the relays know. Where the database does not answer nothing is offered: nobody has asked for an error.
func (c *rootCommand) known(ctx context.Context) (topics []operator.Topic) {
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	_ = c.look(ctx, func(op *operator.Operator) (err error) {
		topics, err = op.Topics(ctx)
		return err
	})
	return topics
}
