package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// newRegistryList lists event types.
func newRegistryList(root *rootCommand) *cobra.Command {
	source := &registrySource{root: root}
	offline := false
	cmd := source.flags(root.show(&cobra.Command{
		Use:   "list",
		Short: "List the event types of the registry, of the relays, and of what was emitted",
		Long: `List event types: those of the registry, with topic, aggregate type, version, and whether they have a schema;
and, where a database is given, those that relays know, and those that were emitted. Without a registry it is the
database alone; without a database, or with --offline, the registry alone.

SEEN is when the last event of a type was emitted, among the newest 50,000 and, with the index of 'outboxctl migrate
lookups add type', among all. A type that was seen and that the registry does not have is 'unknown': a relay with this
registry would park its events. Without a registry it is one that no relay knows. The viewer role is enough.

` + registryHelp,
		Example: "  outboxctl registry list --registry registry.yaml\n" +
			"  outboxctl registry list --registry registry.yaml --offline -o json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	}, func(ctx context.Context, p *present.Printer) error { return listTypes(ctx, p, source, offline) }))
	cmd.Flags().BoolVar(&offline, "offline", false, "do not ask the database")
	return cmd
}

func listTypes(ctx context.Context, p *present.Printer, source *registrySource, offline bool) error {
	root := source.root
	registry, given, err := source.find()
	if err != nil {
		return err
	}
	if given && registry.undocumented != nil {
		return registry.undocumented
	}
	address, err := root.address()
	if err != nil {
		return err
	}
	if offline || address == "" {
		if !given {
			return usageError{"neither a registry nor a database is given: name the first with --registry, the second in " +
				"DATABASE_URL"}
		}
		return showTypes(p, root, operator.TypesOf(registry.Document))
	}
	return root.look(ctx, func(op *operator.Operator) error {
		var document *contracts.Document
		if given {
			document = &registry.Document
		}
		types, err := op.EventTypes(ctx, document)
		if err != nil {
			return err
		}
		return showTypes(p, root, types)
	})
}

func showTypes(p *present.Printer, root *rootCommand, types *operator.EventTypes) error {
	if root.output == present.JSON {
		return p.One(types, nil)
	}
	now := time.Now()
	type row = operator.EventType
	err := present.List(p, types.Types, "there is no event type",
		present.Column[row]{Name: "TYPE", Of: func(t row) string { return cut(t.Type, 48) }},
		present.Column[row]{Name: "STATUS", Of: typeStatus, Style: func(t row) present.Style {
			if t.Unknown {
				return present.Bad
			}
			return present.Plain
		}},
		present.Column[row]{Name: "TOPIC", Of: typeTopic, Optional: true},
		present.Column[row]{Name: "AGGREGATE", Of: typeAggregate, Optional: true},
		present.Column[row]{
			Name: "VERSION", Of: func(t row) string { return numberOrNone(int64(t.Version)) }, Right: true,
			Optional: true,
		},
		present.Column[row]{Name: "SCHEMA", Of: func(t row) string {
			if !t.Registry {
				return ""
			}
			return yesNo(t.Schema)
		}, Optional: true},
		present.Column[row]{Name: "RELAYS", Of: func(t row) string {
			if !types.Database {
				return ""
			}
			return strconv.Itoa(t.Relays)
		}, Right: true, Optional: true},
		present.Column[row]{
			Name: "SEEN", Of: func(t row) string { return agoOf(t.LastSeenAt, now) }, Right: true,
			Optional: true,
		},
		present.Column[row]{
			Name: "HELD", Of: func(t row) string { return numberOrNone(t.Held) }, Right: true,
			Optional: true,
		})
	if err == nil && types.Database && !types.Complete && types.Since != nil {
		root.notef("what was seen is of the newest %d events, back to %s", types.Looked, ago(*types.Since, now))
	}
	return err
}

func numberOrNone(number int64) string {
	if number == 0 {
		return ""
	}
	return strconv.FormatInt(number, 10)
}

// typeStatus is who knows a type, in a word.
func typeStatus(t operator.EventType) string {
	switch {
	case t.Unknown:
		return "unknown"
	case t.Registry:
		return "registry"
	default:
		return "relays"
	}
}

// typeTopic is where a type goes; where the relays send it elsewhere, that as well.
func typeTopic(t operator.EventType) string {
	if !t.Registry {
		return joined(t.RelayTopics)
	}
	if len(t.RelayTopics) > 0 && !slices.Equal(t.RelayTopics, []string{t.Topic}) {
		return t.Topic + " (relays: " + joined(t.RelayTopics) + ")"
	}
	return t.Topic
}

// typeAggregate is the aggregate type of a contract, and others with which the type was seen.
func typeAggregate(t operator.EventType) string {
	others := slices.DeleteFunc(slices.Clone(t.Aggregates), func(name string) bool { return name == t.Aggregate })
	switch {
	case !t.Registry:
		return joined(others)
	case len(others) > 0:
		return t.Aggregate + " (seen: " + joined(others) + ")"
	default:
		return t.Aggregate
	}
}

// registryCheck says what a registry cannot publish.
type registryCheck struct {
	source *registrySource
	how    operator.RegistryCheck
}

func newRegistryCheck(root *rootCommand) *cobra.Command {
	c := &registryCheck{source: &registrySource{root: root}}
	cmd := c.source.flags(root.show(&cobra.Command{
		Use:   "check",
		Short: "Say before a deploy which events that wait this registry cannot publish",
		Long: `Say which of the events that wait (ready, retrying, parked, waiting behind others) a relay with this registry
could not publish, by type, with counts and examples: their type has no contract, their aggregate type is another one,
their payload breaks the schema. It looks at each event as a relay does, and changes nothing.

An event whose envelope has another version than the contract is listed too, but not counted: it is published as it is.

The exit code is 1 if there is an event that cannot be published, and if nobody can tell: there are more rows than
--limit, of which each lane has a share, or the role may not read payloads (GRANT SELECT ON outbox_events). With
--no-payloads the viewer role is enough: then types and aggregates are all that is asked about.

` + registryHelp,
		Example: "  outboxctl registry check --registry registry.yaml\n" +
			"  outboxctl registry check --config publisher.yaml --limit 200000 -o json",
		Args: cobra.NoArgs,
	}, c.run))
	cmd.Flags().IntVar(&c.how.Limit, "limit", 20000, "how many rows to read, at most 1000000")
	cmd.Flags().BoolVar(&c.how.NoPayloads, "no-payloads", false, "look at types and aggregates alone")
	return cmd
}

func (c *registryCheck) run(ctx context.Context, p *present.Printer) error {
	registry, err := c.source.loadRegistry()
	if err != nil {
		return err
	}
	root := c.source.root
	return root.look(ctx, func(op *operator.Operator) error {
		report, err := op.CheckRegistry(ctx, registry.File.Registry, c.how)
		if err != nil {
			return err
		}
		if err := c.show(p, report); err != nil {
			return err
		}
		return c.verdict(report)
	})
}

// verdict is the error that a check ends with. It lets a deploy pass, so that what was not looked at is an error too.
func (c *registryCheck) verdict(report *operator.RegistryReport) error {
	unread := report.Looked > 0 && !report.Payloads && !c.how.NoPayloads
	var rest, hint string
	switch {
	case unread:
		rest = "this role may not read payloads"
		hint = fmt.Sprintf("GRANT SELECT ON %s.outbox_events TO it, or ask as another; --no-payloads asks about types and "+
			"aggregates alone", c.source.root.schema)
	case report.Complete:
	case c.how.Limit == operator.MaxChecked:
		rest, hint = "there is more than was looked at", "let relays publish some of it first, and ask again"
	default:
		rest = "there is more than was looked at"
		hint = fmt.Sprintf("read more: --limit %d", min(max(2*c.how.Limit, 40_000), operator.MaxChecked))
	}
	if report.Unpublishable > 0 {
		if rest != "" {
			c.source.root.notef("that is not all, %s: %s", rest, hint)
		}
		return problem{
			code: "unpublishable_events", exit: exitFailed,
			err: fmt.Errorf("%s cannot be published with this registry",
				plural(int(report.Unpublishable), "event that waits", "events that wait")),
			hint: "a relay with it would park events of unknown types, and make the others dead",
		}
	}
	if rest == "" {
		return nil
	}
	return problem{
		code: "check_incomplete", exit: exitFailed, err: fmt.Errorf("nobody can tell yet: %s", rest), hint: hint,
	}
}

func (c *registryCheck) show(p *present.Printer, report *operator.RegistryReport) error {
	if c.source.root.output == present.JSON {
		return p.One(report, nil)
	}
	looked := plural(int(report.Looked), "event that waits", "events that wait")
	none := "all " + looked + " can be published"
	switch {
	case report.Looked == 0 && report.Complete:
		none = "no event waits"
	case !report.Complete:
		none = "nothing is wrong with " + looked + ", and there is more"
	case !report.Payloads:
		none = "nothing is wrong with the types and aggregates of " + looked + ", payloads were not looked at"
	}
	type row = operator.RegistryFinding
	return present.List(p, report.Findings, none,
		present.Column[row]{Name: "TYPE", Of: func(f row) string { return cut(f.Type, 48) }},
		present.Column[row]{Name: "REASON", Of: func(f row) string { return f.Reason }, Style: func(f row) present.Style {
			if f.Publishable {
				return present.Warn
			}
			return present.Bad
		}},
		present.Column[row]{Name: "EVENTS", Of: func(f row) string { return strconv.FormatInt(f.Events, 10) }, Right: true},
		present.Column[row]{Name: "STATES", Of: func(f row) string {
			var states []string
			for _, state := range slices.Sorted(maps.Keys(f.States)) {
				states = append(states, fmt.Sprintf("%s %d", state, f.States[state]))
			}
			return strings.Join(states, ", ")
		}},
		present.Column[row]{Name: "DETAIL", Of: func(f row) string { return cut(f.Detail, 80) }},
		present.Column[row]{Name: "FOR EXAMPLE", Of: func(f row) string { return f.Examples[0].String() }})
}
