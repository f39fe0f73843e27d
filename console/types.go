package console

import (
	"context"

	"github.com/posthaste-dev/posthaste/relay/operator"
)

// typesScreen is what the screen of event types has.
type typesScreen struct {
	Found *operator.EventTypes
	// Registry tells that types are compared with one.
	Registry bool
	// Unknown is how many are marked.
	Unknown int
	Types   []operator.EventType
}

func (q *request) typesPage() error {
	found, err := q.outbox.system.types.get(q.Context(), "", func(ctx context.Context) (*operator.EventTypes, error) {
		return q.outbox.op.EventTypes(ctx, q.outbox.Registry)
	})
	if err != nil {
		return err
	}
	screen := &typesScreen{Found: found, Registry: q.outbox.Registry != nil}
	var others []operator.EventType
	for _, t := range found.Types {
		if t.Unknown {
			screen.Unknown++
			screen.Types = append(screen.Types, t)
		} else {
			others = append(others, t)
		}
	}
	screen.Types = append(screen.Types, others...)
	return q.ok("types", "Types", 0, screen)
}
