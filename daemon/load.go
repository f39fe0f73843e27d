package daemon

import (
	"errors"
	"fmt"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/outbox"
)

// loaded is a configuration that was accepted.
type loaded struct {
	args     []string
	environ  []string
	values   *config.Values
	broker   Broker            // of the key broker
	others   map[string]Broker // by topic, those of the key brokers
	registry *outbox.Registry
	file     *registryfile.File // nil: the registry is compiled in
}

// set is the program's configuration, without what is looked at together.
func (p Program) set() config.Set {
	return config.Set{Prefix: prefix, Keys: p.keys(), Aliases: p.Aliases, Defaults: p.Defaults}
}

// load reads the configuration and everything that it names, and says all that is wrong at once.
func (p Program) load(args, environ []string) (*loaded, error) {
	switch {
	case len(p.Brokers) == 0:
		return nil, errors.New("the program has no broker: give daemon.Program some Brokers")
	case p.Registry != nil && p.NewRegistry != nil:
		return nil, errors.New("the program has a Registry and a NewRegistry: give daemon.Program one of them")
	}
	found := loaded{args: args, environ: environ}
	set := p.set()
	set.Check = func(values *config.Values) []config.Problem {
		problems := append(checkDatabase(values, databaseURL), checkDatabase(values, databaseListenURL)...)
		problems = append(problems, checkSettings(values)...)
		problems = append(problems, p.checkAllowed(values)...)
		problems = append(problems, p.chooseBrokers(values, &found)...)
		problems = append(problems, p.checkTracing(values)...)
		problems = append(problems, p.checkConsole(values)...)
		problems = append(problems, p.loadRegistry(values, &found)...)
		return append(problems, p.checkTopics(values, &found)...)
	}
	values, err := set.Load(args, environ)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	found.values = values
	return &found, nil
}

// loadRegistry takes the registry from the program, or from its file.
func (p Program) loadRegistry(values *config.Values, found *loaded) []config.Problem {
	var err error
	switch {
	case p.Registry != nil:
		found.registry = p.Registry
		return nil
	case p.NewRegistry != nil:
		if found.registry, err = p.NewRegistry(values); err != nil {
			return []config.Problem{{Text: "the registry: " + err.Error()}}
		}
		return nil
	case registryFile.Get(values) == "": // told as missing
		return nil
	}
	found.file, err = registryfile.Load(registryFile.Get(values),
		registryfile.Options{DefaultTopic: TopicDefault.Get(values)})
	if invalid := (*registryfile.Error)(nil); errors.As(err, &invalid) {
		var problems []config.Problem
		for _, problem := range invalid.Problems {
			problems = append(problems, config.Problem{Text: problem})
		}
		return problems
	}
	if err != nil {
		return []config.Problem{values.Problem(registryFile, "%v", err)}
	}
	found.registry = found.file.Registry
	return nil
}
