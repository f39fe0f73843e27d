package contracts

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Side is for whom a change breaks something.
type Side string

// The sides. Producers are broken by what was good and is rejected now: their events, and those that wait in the
// outbox, can no longer be published. Consumers are broken by what may arrive now and could not before, and by what no
// longer arrives where they look.
const (
	Nobody    Side = ""
	Producers Side = "producers"
	Consumers Side = "consumers"
	Both      Side = "both"
)

// includes tells whether a side is one of those that are broken.
func (s Side) includes(one Side) bool { return s == one || s == Both && one != Nobody }

// A Change is one difference between two documents.
type Change struct {
	Type string `json:"type"`
	// Kind is the change in one word, as docs/guide/contracts.md lists them.
	Kind string `json:"kind"`
	// Field is where in the payload, as a path: /lines/*/quantity. Empty: it is about the contract.
	Field string `json:"field,omitempty"`
	// Breaks is for whom; empty: nobody.
	Breaks Side `json:"breaks,omitempty"`
	// Text says it in a sentence.
	Text string `json:"text"`
}

// Breaking are the changes that break something for this side; Both: for anybody.
func Breaking(changes []Change, side Side) (breaking []Change) {
	for _, change := range changes {
		if change.Breaks != Nobody && (side == Both || change.Breaks.includes(side)) {
			breaking = append(breaking, change)
		}
	}
	return breaking
}

// Diff is what changes from one document to another, by type.
func Diff(before, after Document) []Change {
	changes := []Change{}
	for _, was := range before.Contracts {
		is, stays := after.Find(was.Type)
		if !stays {
			changes = append(changes, Change{
				Type: was.Type, Kind: "type_removed", Breaks: Both,
				Text: "nothing of this type is published any more; what waits is parked, and dies",
			})
			continue
		}
		changes = append(changes, compareContracts(was, is)...)
	}
	for _, is := range after.Contracts {
		if _, known := before.Find(is.Type); !known {
			changes = append(changes, Change{Type: is.Type, Kind: "type_added", Text: "to topic " + is.Topic})
		}
	}
	slices.SortStableFunc(changes, func(a, b Change) int {
		return cmp.Or(strings.Compare(a.Type, b.Type), strings.Compare(a.Field, b.Field))
	})
	return changes
}

func compareContracts(was, is Contract) (changes []Change) {
	add := func(kind string, breaks Side, format string, args ...any) {
		changes = append(changes, Change{Type: is.Type, Kind: kind, Breaks: breaks, Text: fmt.Sprintf(format, args...)})
	}
	if was.Topic != is.Topic {
		add("topic_changed", Consumers, "from %s to %s: consumers of the old one get nothing more", was.Topic, is.Topic)
	}
	if was.Aggregate != is.Aggregate {
		add("aggregate_changed", Both, "from %s to %s: what waits dies, and the order of events begins anew",
			was.Aggregate, is.Aggregate)
	}
	switch {
	case is.Version > was.Version:
		add("version_raised", Nobody, "from %d to %d", was.Version, is.Version)
	case is.Version < was.Version:
		add("version_lowered", Consumers, "from %d to %d: consumers take it for an older payload", was.Version, is.Version)
	}
	switch {
	case was.OnDead == onDeadBlock && is.OnDead == onDeadSkip:
		add("on_dead_skips", Consumers, "later events go on without one that died: consumers may see a hole")
	case was.OnDead == onDeadSkip && is.OnDead == onDeadBlock:
		add("on_dead_blocks", Nobody, "later events wait behind one that died")
	}
	if was.MaxAttempts != is.MaxAttempts {
		add("max_attempts_changed", Nobody, "from %d to %d", was.MaxAttempts, is.MaxAttempts)
	}
	switch {
	case len(was.Schema) == 0 && len(is.Schema) > 0:
		add("schema_added", Producers, "what does not keep it is rejected now")
	case len(was.Schema) > 0 && len(is.Schema) == 0:
		add("schema_removed", Consumers, "nothing is promised about the payload any more")
	case len(was.Schema) > 0:
		changes = append(changes, compareSchemas(was, is)...)
	}
	return changes
}
