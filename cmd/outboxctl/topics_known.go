package main

import (
	"context"
	"slices"
	"strings"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// mostNamed is how many topics one sentence names.
const mostNamed = 10

// noteUnknownTopic says where no relay publishes to the topic that was named: it may be misspelt. It stands all the
// same, since relays that know it may start later, and copies can go anywhere. Where no relay is alive, nobody knows.
func (c *orderCommand) noteUnknownTopic(ctx context.Context, op *operator.Operator) {
	if c.topic == "" {
		return
	}
	topics, err := op.Topics(ctx)
	if err != nil {
		return
	}
	var known []string
	for i := range topics {
		if slices.ContainsFunc(topics[i].Types, func(t operator.TopicType) bool { return t.Alive > 0 }) {
			known = append(known, topics[i].Name)
		}
	}
	if len(known) == 0 || slices.Contains(known, c.topic) {
		return
	}
	rest := ""
	if len(known) > mostNamed {
		known, rest = known[:mostNamed], " and more"
	}
	c.root.notef("no relay that is alive publishes to %q; they know %s%s", c.topic, strings.Join(known, ", "), rest)
}
