package relay

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/publish"
)

// publisherOf is where the events of a topic go.
func (c *Config) publisherOf(topic string) publish.Publisher {
	if publisher, own := c.Publishers[topic]; own {
		return publisher
	}
	return c.Publisher
}

// publisherProblems lists what is wrong with the publishers.
func (c *Config) publisherProblems() (problems []error) {
	topics := c.topics()
	problems = c.unknownTopics("Publishers", maps.Keys(c.Publishers))
	check := func(name string, publisher publish.Publisher, types []string) {
		if err := publisherProblem(publisher, types); err != nil {
			problems = append(problems, fmt.Errorf("%s %w", name, err))
		}
	}
	for _, topic := range slices.Sorted(maps.Keys(c.Publishers)) {
		check(fmt.Sprintf("the publisher of the topic %.40q", topic), c.Publishers[topic], topics[topic])
		delete(topics, topic)
	}
	var others []string // of the topics that go to it
	for _, types := range topics {
		others = append(others, types...)
	}
	slices.Sort(others)
	check("the Publisher", c.Publisher, others)
	return problems
}

// publisherProblem says why a publisher cannot serve these event types.
func publisherProblem(publisher publish.Publisher, types []string) error {
	if publisher == nil {
		return errors.New("is missing: give a broker's publisher, or a publish.PublisherFunc")
	}
	if isNothing(publisher) {
		return fmt.Errorf("is a nil %T: give it what it shall publish with", publisher)
	}
	if handlers, are := publisher.(*handlers); are {
		return handlers.problem(types)
	}
	return nil
}

// topics are the event types of each topic of the registry.
func (c *Config) topics() map[string][]string {
	topics := map[string][]string{}
	if c.Registry != nil {
		for _, eventType := range c.Registry.Types() {
			contract, _ := c.Registry.Contract(eventType)
			topics[contract.Topic] = append(topics[contract.Topic], eventType)
		}
	}
	return topics
}

// unknownTopics says which topics a field names that no contract has: a name with a mistake would mean nothing.
func (c *Config) unknownTopics(field string, named iter.Seq[string]) (problems []error) {
	if c.Registry == nil {
		return nil // which is a problem of its own
	}
	topics := c.topics()
	known := strings.Join(slices.Sorted(maps.Keys(topics)), ", ")
	for _, topic := range slices.Sorted(named) {
		if topics[topic] == nil {
			problems = append(problems,
				fmt.Errorf("%s: topic %.40q: no contract has it; those that are: %s", field, topic, known))
		}
	}
	return problems
}
