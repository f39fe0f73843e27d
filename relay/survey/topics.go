package survey

import (
	"maps"

	"github.com/jackc/pgx/v5"
)

// topicsOf are the arguments that say which topic each event type goes to.
func topicsOf(config *Config) []any {
	types, topics := []string{}, []string{}
	for eventType, topic := range config.Topics {
		types, topics = append(types, eventType), append(topics, topic)
	}
	if config.Registry != nil {
		for _, eventType := range config.Registry.Types() {
			contract, _ := config.Registry.Contract(eventType)
			types, topics = append(types, eventType), append(topics, contract.Topic)
		}
	}
	return []any{types, topics}
}

// add counts other events as well.
func (c *Count) add(other Count) {
	c.Events, c.Oldest = c.Events+other.Events, max(c.Oldest, other.Oldest)
}

// scanReady takes in what is ready, by topic.
func scanReady(rows pgx.Rows, found *Report) error {
	var topic string
	var count, all Count
	topics := map[string]Count{}
	_, err := pgx.ForEachRow(rows, []any{&topic, &count.Events, age{&count.Oldest, nil}}, func() error {
		topics[topic] = count
		all.add(count)
		return nil
	})
	all.Events = min(all.Events, Limit)
	found.Ready, found.ReadyTopics = all, topics
	found.addTopics()
	return err //nolint:wrapcheck // it is logged
}

// The kinds of held rows, as the table has them.
const (
	retrying = 1
	parked   = 2
	waiting  = 3
)

// scanHeld takes in what is held, by kind and topic.
func scanHeld(rows pgx.Rows, found *Report) error {
	var kind int16
	var topic string
	var count Count
	kinds, topics := map[int16]*Count{retrying: {}, parked: {}, waiting: {}}, map[string]Count{}
	_, err := pgx.ForEachRow(rows, []any{&kind, &topic, &count.Events, age{&count.Oldest, nil}}, func() error {
		kinds[kind].add(count)
		total := topics[topic]
		total.add(count)
		topics[topic] = total
		return nil
	})
	found.Retrying, found.Parked, found.Waiting = *kinds[retrying], *kinds[parked], *kinds[waiting]
	found.HeldTopics = topics
	found.addTopics()
	return err //nolint:wrapcheck // it is logged
}

// addTopics adds up what is ready and what is held. The map is a new one each time: reports that were handed out keep
// theirs.
func (r *Report) addTopics() {
	r.Topics = maps.Clone(r.ReadyTopics)
	if r.Topics == nil {
		r.Topics = map[string]Count{}
	}
	for topic, count := range r.HeldTopics {
		total := r.Topics[topic]
		total.add(count)
		r.Topics[topic] = total
	}
}
