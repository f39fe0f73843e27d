package pgstore

import (
	"context"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// SaveRoutes writes down how this relay's routes stand: all of them, and those that are not listed are
// forgotten. The relay must be registered: its first heartbeat does that.
func (s *Store) SaveRoutes(ctx context.Context, relay outbox.ID, routes []core.RouteStatus) error {
	topics, problems := make([]string, len(routes)), make([]string, len(routes))
	paused, byOperator := make([]bool, len(routes)), make([]bool, len(routes))
	for i, route := range routes {
		topics[i], paused[i], byOperator[i], problems[i] = route.Topic, route.Paused, route.ByOperator, readable(route.Error)
	}
	_, err := s.pool.Exec(ctx, s.sql.saveRoutes, uuid(relay), topics, paused, problems, byOperator)
	return failed("save routes", err)
}
