package operator

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/outbox/contracts"
)

// mostTypes is the most rows of types that one look answers.
const mostTypes = 10_000

// EventTypes are the event types of a registry, of the relays, and of what was emitted.
type EventTypes struct {
	Types []EventType `json:"types"`
	// Database tells whether one was asked. Otherwise nothing is known of relays and of what was emitted.
	Database bool `json:"database"`
	// Looked is how many of the newest events were looked at, Since when the oldest of them was emitted, and Complete
	// that these are all.
	Looked   int64      `json:"looked"`
	Since    *time.Time `json:"since,omitempty"`
	Complete bool       `json:"complete"`
}

// An EventType is what is known of one.
type EventType struct {
	Type string `json:"type"`
	// Registry tells whether the registry has it. If so Aggregate, Topic, Version and Schema are the contract's.
	Registry  bool   `json:"registry"`
	Aggregate string `json:"aggregate,omitempty"`
	Topic     string `json:"topic,omitempty"`
	Version   int    `json:"version,omitempty"`
	Schema    bool   `json:"schema"`
	// Relays is how many relays that are alive know it, RelayTopics where relays that have not ended send it.
	Relays      int      `json:"relays"`
	RelayTopics []string `json:"relayTopics,omitempty"`
	// Events is how many were seen among the newest, LastSeenAt when the last one was emitted, as far as is known.
	Events     int64      `json:"events"`
	LastSeenAt *time.Time `json:"lastSeenAt,omitempty"`
	// Held is how many are held: they are retried, parked, or wait behind others.
	Held int64 `json:"held"`
	// Aggregates are the aggregate types with which it was seen.
	Aggregates []string `json:"aggregates,omitempty"`
	// Unknown tells that it was seen, and that the registry does not have it; without a registry, that no relay does.
	Unknown bool `json:"unknown"`
}

// TypesOf are the event types of a registry alone.
func TypesOf(registry contracts.Document) *EventTypes {
	types := &EventTypes{Types: []EventType{}}
	for _, contract := range registry.Contracts {
		types.Types = append(types.Types, EventType{
			Type: contract.Type, Registry: true, Aggregate: contract.Aggregate, Topic: contract.Topic,
			Version: contract.Version, Schema: len(contract.Schema) > 0,
		})
	}
	return types
}

// EventTypes lists the event types of a registry, those that relays know, and those that were emitted; nil: of no
// registry. When a type was last seen the newest 50,000 events say and, where there is the optional index by type, all.
// The grants of the viewer role are enough.
func (o *Operator) EventTypes(ctx context.Context, registry *contracts.Document) (*EventTypes, error) {
	found := &EventTypes{}
	if registry != nil {
		found = TypesOf(*registry)
	}
	found.Database = true
	g := &typesGathering{found: found, byName: map[string]*EventType{}}
	for i := range found.Types {
		g.byName[found.Types[i].Type] = &found.Types[i]
	}
	err := o.look(ctx, "types", func(l *looking) error {
		if _, err := l.Exec(ctx, l.sql("look_in_order")); err != nil {
			return err //nolint:wrapcheck // look says what it was
		}
		for _, gather := range []func(context.Context, *Operator, *looking) error{g.relays, g.newest, g.held, g.last} {
			if err := gather(ctx, o, l); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	types := []EventType{}
	for _, name := range slices.Sorted(maps.Keys(g.byName)) {
		is := *g.byName[name]
		slices.Sort(is.Aggregates)
		is.Aggregates, is.RelayTopics = slices.Compact(is.Aggregates), slices.Compact(is.RelayTopics)
		is.Unknown = !is.Registry && (registry != nil || len(is.RelayTopics) == 0) && (is.Events > 0 || is.Held > 0)
		types = append(types, is)
	}
	found.Types = types
	return found, nil
}

// typesGathering brings together what is known of types.
type typesGathering struct {
	found  *EventTypes
	byName map[string]*EventType
}

func (g *typesGathering) named(name string) *EventType {
	if g.byName[name] == nil {
		g.byName[name] = &EventType{Type: name}
	}
	return g.byName[name]
}

func (g *typesGathering) relays(ctx context.Context, o *Operator, l *looking) error {
	var topic, name string
	var relays []string
	var alive int
	return o.rows(ctx, l, "topics_known", []any{mostTopicRows}, []any{&topic, &name, &relays, &alive}, func() {
		is := g.named(name)
		is.Relays += alive
		is.RelayTopics = append(is.RelayTopics, topic)
	})
}

func (g *typesGathering) newest(ctx context.Context, o *Operator, l *looking) error {
	var name, aggregate string
	var events int64
	var last, first *time.Time
	err := o.rows(ctx, l, "contracts_seen", []any{l.window, mostTypes}, []any{&name, &aggregate, &events, &last, &first},
		func() {
			is := g.named(name)
			is.Events += events
			is.Aggregates = append(is.Aggregates, aggregate)
			is.LastSeenAt = later(is.LastSeenAt, last)
			g.found.Looked += events
			if first != nil && (g.found.Since == nil || first.Before(*g.found.Since)) {
				at := first.UTC()
				g.found.Since = &at
			}
		})
	g.found.Complete = g.found.Looked < int64(l.window)
	return err
}

// later is the later of two times that may not be known.
func later(one, other *time.Time) *time.Time {
	if other == nil || one != nil && !other.After(*one) {
		return one
	}
	at := other.UTC()
	return &at
}

func (g *typesGathering) held(ctx context.Context, o *Operator, l *looking) error {
	var name, aggregate string
	var events int64
	return o.rows(ctx, l, "contracts_seen_held", []any{l.window, mostTypes}, []any{&name, &aggregate, &events}, func() {
		is := g.named(name)
		is.Held += events
		is.Aggregates = append(is.Aggregates, aggregate)
	})
}

// last looks for what is older than the newest events, where an index answers that.
func (g *typesGathering) last(ctx context.Context, o *Operator, l *looking) error {
	var indexed bool
	if err := l.QueryRow(ctx, l.sql("type_index"), l.table("outbox_events")).Scan(&indexed); err != nil || !indexed {
		return err //nolint:wrapcheck // look says what it was
	}
	var missing []string
	for name, is := range g.byName {
		if is.LastSeenAt == nil {
			missing = append(missing, name)
		}
	}
	slices.SortFunc(missing, cmp.Compare)
	var name string
	var at *time.Time
	return o.rows(ctx, l, "contracts_seen_last", []any{missing}, []any{&name, &at}, func() {
		g.named(name).LastSeenAt = later(nil, at)
	})
}
