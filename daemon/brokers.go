package daemon

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/internal/suggest"
	"github.com/posthaste-dev/posthaste/publish"
)

// brokerNames are those that the program knows.
func (p Program) brokerNames() (names []string) {
	for _, broker := range p.Brokers {
		names = append(names, broker.Name)
	}
	return names
}

// brokerKey chooses among the program's brokers.
func (p Program) brokerKey() config.Key[string] {
	spec := config.Spec[string]{Doc: "The kind of broker."}
	if names := p.brokerNames(); len(names) == 1 {
		spec.Default = names[0]
	} else {
		spec.Required = true
	}
	return config.Choice("broker", p.brokerNames(), spec)
}

// brokersKey chooses for single topics.
func (p Program) brokersKey() config.Key[map[string]string] {
	return config.Map("brokers", config.Spec[map[string]string]{
		Otherwise: "`broker` for all", Example: "orders=nats,billing=pubsub",
		Doc: "The brokers of single topics, so that one publisher serves several: half of a system can move from one to " +
			"another.",
	})
}

// chooseBrokers finds the broker of each topic, and says what is wrong with the choice and with the keys of each.
func (p Program) chooseBrokers(values *config.Values, found *loaded) (problems []config.Problem) {
	known := map[string]Broker{}
	for _, broker := range p.Brokers {
		known[broker.Name] = broker
	}
	broker, chosen := known[p.brokerKey().Get(values)]
	if !chosen {
		return nil // told with the key
	}
	found.broker, found.others = broker, map[string]Broker{}
	if len(p.Brokers) > 1 {
		of := p.brokersKey()
		for topic, name := range maps.All(of.Get(values)) {
			other, is := known[name]
			if !is {
				problems = append(problems, values.Problem(of, "topic %.40q: %.40q, must be one of %s%s", topic, name,
					strings.Join(p.brokerNames(), ", "), suggest.DidYouMean(name, p.brokerNames())))
				continue
			}
			found.others[topic] = other
		}
	}
	for _, broker := range found.brokers() {
		if broker.Check != nil {
			problems = append(problems, broker.Check(values, allowsInsecure(values, broker.Name))...)
		}
	}
	return problems
}

// brokerOf is where a topic goes.
func (l *loaded) brokerOf(topic string) Broker {
	if other, own := l.others[topic]; own {
		return other
	}
	return l.broker
}

// brokers are all that are used: that of the key broker, to which also goes what no contract has, and then the others
// by name.
func (l *loaded) brokers() []Broker {
	byName := map[string]Broker{}
	for _, other := range l.others {
		if other.Name != l.broker.Name {
			byName[other.Name] = other
		}
	}
	all := []Broker{l.broker}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		all = append(all, byName[name])
	}
	return all
}

// brokersText names them for people.
func (l *loaded) brokersText() string {
	var names []string
	for _, broker := range l.brokers() {
		names = append(names, broker.Name)
	}
	return strings.Join(names, ", ")
}

// optionsOf are what a broker is opened with: its topics are those of the registry that go there.
func (l *loaded) optionsOf(broker Broker, program Program, logger *slog.Logger) Options {
	options := Options{
		Insecure: allowsInsecure(l.values, broker.Name), Logger: logger,
		Deadline:  cmp.Or(relayDeadline.Get(l.values), relayLease.Get(l.values)/3),
		UserAgent: "posthaste-" + program.Name + "/" + program.Version,
	}
	for _, topic := range l.topics() {
		if l.brokerOf(topic).Name == broker.Name {
			options.Topics = append(options.Topics, topic)
		}
	}
	return options
}

// connections are brokers that were opened, by name.
type connections map[string]*Connection

// open opens all brokers that are used. What was opened is in c also after an error.
func (c connections) open(ctx context.Context, l *loaded, program Program, logger *slog.Logger) error {
	for _, broker := range l.brokers() {
		connection, err := broker.Open(ctx, l.values, l.optionsOf(broker, program, logger))
		if err != nil {
			return fmt.Errorf("%s: %w", broker.Name, err)
		}
		c[broker.Name] = connection
	}
	return nil
}

// close closes them.
func (c connections) close() error {
	var failures []error
	for name, connection := range c {
		if connection.Close == nil {
			continue
		}
		if err := connection.Close(); err != nil {
			failures = append(failures, fmt.Errorf("%s: close: %w", name, err))
		}
	}
	return errors.Join(failures...)
}

// publishers are the publisher of each broker that is used, traced if the program traces.
func (p *publisher) publishers(ctx context.Context) (main publish.Publisher, ofTopics map[string]publish.Publisher,
	err error,
) {
	byName := map[string]publish.Publisher{}
	for _, broker := range p.brokers() {
		if byName[broker.Name], err = p.trace(ctx, broker, p.connections[broker.Name].Publisher); err != nil {
			return nil, nil, err
		}
	}
	ofTopics = map[string]publish.Publisher{}
	for topic, broker := range p.others {
		ofTopics[topic] = byName[broker.Name]
	}
	return byName[p.broker.Name], ofTopics, nil
}
