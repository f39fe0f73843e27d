package main

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/posthaste-dev/posthaste/cmd/internal/program"
	"github.com/posthaste-dev/posthaste/cmd/outboxctl/internal/present"
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// newRegistry is the group of the commands about contracts.
func newRegistry(root *rootCommand) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "registry",
		Short: "Contracts: list, export and compare them, make SQL and AsyncAPI of them, check them against what waits",
		Long: `Look at the contracts of a registry, and make something of them for producers and consumers.

The registry is the file of --registry, or the one that outbox-publisher's configuration names (--config FILE,
POSTHASTE_CONFIG, POSTHASTE_REGISTRY_FILE). It may be an export as well. Of the rest of the configuration the topic of
contracts that name none (POSTHASTE_TOPIC_DEFAULT) and the formats of messages are looked at, and nothing else: none of
these commands needs a broker, and only 'list' and 'check' ask the database. docs/guide/contracts.md tells how to use
them.`,
		Args: cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			return errors.New("list, export, sql, asyncapi, schema, diff or check is missing")
		},
	}
	cmd.AddCommand(newRegistryList(root), newRegistryExport(root), newRegistrySQL(root), newRegistryAsyncAPI(root),
		newRegistrySchema(root), newRegistryDiff(root), newRegistryCheck(root))
	return cmd
}

// registrySource is which registry a command is about.
type registrySource struct {
	root                           *rootCommand
	registry, config, defaultTopic string
}

// flags adds those that name it.
func (s *registrySource) flags(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().StringVar(&s.registry, "registry", "", "the file of contracts, or an export")
	cmd.Flags().StringVar(&s.config, "config", "", "the configuration file of outbox-publisher, which names it")
	s.topicFlag(cmd)
	return cmd
}

func (s *registrySource) topicFlag(cmd *cobra.Command) {
	cmd.Flags().StringVar(&s.defaultTopic, "default-topic", "", "the topic of contracts that name none")
}

// loadedRegistry is a registry that was read.
type loadedRegistry struct {
	*daemon.Publication
	contracts.Document
	// undocumented is why it has no document. A publisher does without one.
	undocumented error
}

// load reads the registry, as outbox-publisher would, and its document.
func (s *registrySource) load() (*loadedRegistry, error) {
	found, err := s.loadRegistry()
	if err != nil {
		return nil, err
	}
	return found, found.undocumented
}

// loadRegistry is load for those who need no document.
func (s *registrySource) loadRegistry() (*loadedRegistry, error) {
	found, given, err := s.find()
	if err == nil && !given {
		return nil, usageError{"no registry is given: name its file with --registry, or outbox-publisher's " +
			"configuration with --config"}
	}
	return found, err
}

// find is load, where none may be given.
func (s *registrySource) find() (registry *loadedRegistry, given bool, err error) {
	if s.registry != "" && s.config != "" {
		return nil, false, usageError{"--registry and --config name two registries: give one of them"}
	}
	var flags []string
	for name, value := range map[string]string{"registry-file": s.registry, "topic-default": s.defaultTopic} {
		if value != "" {
			flags = append(flags, "--"+name+"="+value)
		}
	}
	publication, err := program.New("").Publication(publisherFlags(s.config, flags), s.root.publisherEnvironment())
	if err != nil {
		return nil, false, unreadable(err)
	}
	if publication.File == nil {
		return nil, false, nil
	}
	document, err := publication.File.Contracts()
	return &loadedRegistry{publication, document, err}, true, nil
}

// unreadable tells an error of a registry's file, or of the configuration that names it.
func unreadable(err error) error {
	if invalid := (*config.Error)(nil); errors.As(err, &invalid) {
		return notConfigured(err)
	}
	return usageError{err.Error()}
}

// loadContracts reads a file of contracts alone.
func loadContracts(name, defaultTopic string) (contracts.Document, error) {
	file, err := registryfile.Load(name, registryfile.Options{DefaultTopic: defaultTopic})
	if err != nil {
		return contracts.Document{}, usageError{err.Error()}
	}
	return file.Contracts()
}

// some leaves the types of a registry that were named; none: all.
func some(document contracts.Document, types []string) (contracts.Document, error) {
	for _, name := range types {
		if _, known := document.Find(name); !known {
			return document, notFound("the registry has no type %.80q", name)
		}
	}
	if len(types) > 0 {
		document.Contracts = slices.DeleteFunc(slices.Clone(document.Contracts), func(c contracts.Contract) bool {
			return !slices.Contains(types, c.Type)
		})
	}
	return document, nil
}

// printDocument prints what is a document whoever reads it.
func (c *rootCommand) printDocument(text json.RawMessage) error {
	return present.New(c.stdout, present.JSON, false).One(text, nil)
}

// registryHelp is the part of a command's help about where the registry comes from.
const registryHelp = `The registry is that of --registry or of outbox-publisher's configuration: see 'outboxctl registry
--help'.`

// yesNo is a word for a column.
func yesNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

// joined is a list for a column.
func joined(list []string) string { return cut(strings.Join(list, ", "), 60) }
