package daemon

import (
	"fmt"
	"maps"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/publish"
)

// A Publication is what a configuration has a publisher publish, and how.
type Publication struct {
	// File has the contracts; nil: the configuration names no file.
	File *registryfile.File
	// DefaultTopic is that of contracts that name none.
	DefaultTopic string
	// Format is how messages look, Formats the same for single topics, Source the ce-source of CloudEvents.
	Format  publish.Format
	Formats map[string]publish.Format
	Source  string
}

// Publication reads the contracts that a configuration names, and how their messages look. What is wrong or missing
// elsewhere in the configuration is not looked at: it takes no password to know what is published.
func (p Program) Publication(args, environ []string) (*Publication, error) {
	p = p.withDefaults()
	found := &Publication{Formats: map[string]publish.Format{}}
	var name, format string
	var formats map[string]string
	for _, read := range []func(set config.Set) error{
		one(registryFile, &name, args, environ), one(TopicDefault, &found.DefaultTopic, args, environ),
		one(messageFormat, &format, args, environ), one(messageFormats, &formats, args, environ),
		one(messageSource, &found.Source, args, environ),
	} {
		if err := read(p.set()); err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
	}
	found.Format = publish.Format(format)
	for topic, format := range maps.All(formats) {
		found.Formats[topic] = publish.Format(format)
	}
	if name == "" {
		return found, nil
	}
	var err error
	if found.File, err = registryfile.Load(name, registryfile.Options{DefaultTopic: found.DefaultTopic}); err != nil {
		return nil, fmt.Errorf("%s: %w", p.Name, err)
	}
	return found, nil
}

// one reads one key of the configuration.
func one[T any](key config.Key[T], into *T, args, environ []string) func(config.Set) error {
	return func(set config.Set) error {
		values, err := set.LoadOne(key, args, environ)
		if err == nil {
			*into = key.Get(values)
		}
		return err
	}
}
