package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// newRegistryExport prints the registry as one document.
func newRegistryExport(root *rootCommand) *cobra.Command {
	source := &registrySource{root: root}
	cmd := source.flags(&cobra.Command{
		Use:   "export",
		Short: "Print all contracts with their schemas as one JSON document",
		Long: `Print all contracts with their schemas as one JSON document, always in the same order: equal registries
have equal exports. Schemas of other files are in it. It is a registry's file itself: outbox-publisher reads it, and so
do 'registry diff' and 'registry check'. Keep the one of the last release to compare with.

` + registryHelp,
		Example:           "  outboxctl registry export --registry registry.yaml >contracts.json",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	})
	cmd.RunE = run(func(context.Context, io.Writer) error {
		registry, err := source.load()
		if err != nil {
			return err
		}
		if err := registryfile.ReadBack(registry.Document); err != nil {
			return err
		}
		text, err := registry.JSON()
		if err != nil {
			return err
		}
		return root.printDocument(text)
	})
	return cmd
}

// newRegistrySQL prints how to emit.
func newRegistrySQL(root *rootCommand) *cobra.Command {
	source := &registrySource{root: root}
	var types []string
	cmd := source.flags(&cobra.Command{
		Use:   "sql [TYPE...]",
		Short: "Print for each type the call by which a producer of any language emits it",
		Long: `Print for each type the call of outbox_emit by which a producer of any language emits it, with its aggregate
type and its version, and with data made of its schema. The calls run as they are; where data could not be made so that
it keeps the schema, a comment says what is missing.

Types need no SQL of their own: there is nothing to install per type, and the database checks no schema. The relay does.

` + registryHelp,
		Example: "  outboxctl registry sql --registry registry.yaml\n" +
			"  outboxctl registry sql --registry registry.yaml order_created --schema billing",
		Args: func(_ *cobra.Command, args []string) error { types = args; return nil },
	})
	cmd.RunE = run(func(_ context.Context, out io.Writer) error {
		registry, err := source.load()
		if err != nil {
			return err
		}
		document, err := some(registry.Document, types)
		if err != nil {
			return err
		}
		return say(out, "%s", document.SQL(root.schema, func(eventType string, data json.RawMessage) error {
			return checkData(registry.File.Registry, eventType, data)
		}))
	})
	takes(cmd, source.types)
	return cmd
}

// types are those of the registry, for completion.
func (s *registrySource) types(context.Context, string) []string {
	found, given, err := s.find()
	if err != nil || !given {
		return nil // nobody has asked for an error
	}
	return found.File.Registry.Types()
}

// checkData holds data to the contract of a type.
func checkData(registry *outbox.Registry, eventType string, data json.RawMessage) error {
	contract, _ := registry.Contract(eventType)
	id := outbox.NewID()
	_, err := registry.Check(outbox.Stored{
		ID: id, EventType: eventType, AggregateType: contract.Aggregate, AggregateID: "1",
		Payload: fmt.Appendf(nil, `{"version":1,"eventId":%q,"occurredAt":"2026-01-31T12:00:00Z","data":%s}`, id, data),
	})
	return err
}

// newRegistryAsyncAPI prints the registry for consumers.
func newRegistryAsyncAPI(root *rootCommand) *cobra.Command {
	source := &registrySource{root: root}
	var about contracts.AsyncAPI
	cmd := source.flags(&cobra.Command{
		Use:   "asyncapi",
		Short: "Print the registry as an AsyncAPI 3.0 document, for consumers",
		Long: `Print the registry as an AsyncAPI 3.0 document: a channel per topic, a message per event type with its
attributes and its envelope, and the schema of each payload. Equal registries have equal documents.

Attributes are those of the format that outbox-publisher's configuration has for the topic (POSTHASTE_MESSAGE_FORMAT,
POSTHASTE_MESSAGE_FORMATS, POSTHASTE_MESSAGE_SOURCE, or the same in the file of --config); docs/reference/formats.md
describes them.

` + registryHelp,
		Example: "  outboxctl registry asyncapi --registry registry.yaml --title Shop >asyncapi.json\n" +
			"  outboxctl registry asyncapi --config publisher.yaml --api-version 1.4.0",
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
	})
	cmd.RunE = run(func(context.Context, io.Writer) error {
		registry, err := source.load()
		if err != nil {
			return err
		}
		about.Format, about.Formats, about.Source = registry.Format, registry.Formats, registry.Source
		text, err := registry.AsyncAPI(about)
		if err != nil {
			return err
		}
		return root.printDocument(text)
	})
	cmd.Flags().StringVar(&about.Title, "title", "Events", "the name of the application that publishes")
	cmd.Flags().StringVar(&about.Version, "api-version", "",
		"the version of the document; without one, a hash of the contracts")
	return cmd
}

// newRegistrySchema prints the schema of one type.
func newRegistrySchema(root *rootCommand) *cobra.Command {
	source := &registrySource{root: root}
	var eventType string
	cmd := source.flags(&cobra.Command{
		Use:   "schema TYPE",
		Short: "Print the JSON Schema of the payload of one type",
		Long: `Print the JSON Schema of the payload of one type: of the field data of its envelope. What it refers to in other
files is in it. A type without a schema takes any object.

` + registryHelp,
		Example: "  outboxctl registry schema order_created --registry registry.yaml",
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) != 1 {
				return usageError{"name one event type"}
			}
			eventType = args[0]
			return nil
		},
	})
	cmd.RunE = run(func(context.Context, io.Writer) error {
		registry, err := source.load()
		if err != nil {
			return err
		}
		contract, known := registry.Find(eventType)
		if !known {
			return notFound("the registry has no type %.80q", eventType)
		}
		if len(contract.Schema) == 0 {
			root.notef("%s has no schema: any object will do", eventType)
			contract.Schema = json.RawMessage(`{"type":"object"}`)
		}
		return root.printDocument(contract.Schema)
	})
	takes(cmd, source.types)
	return cmd
}
