package relay

import (
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// routes is a registry as the core sees it.
type routes struct {
	types  []string
	byType map[string]core.Route
}

func newRoutes(registry *outbox.Registry) *routes {
	r := &routes{types: registry.Types(), byType: map[string]core.Route{}}
	for _, eventType := range r.types {
		contract, _ := registry.Contract(eventType)
		r.byType[eventType] = core.Route{Topic: contract.Topic, Block: contract.OnDead == outbox.Block, MaxAttempts: contract.MaxAttempts}
	}
	return r
}

func (r *routes) Route(eventType string) (core.Route, bool) {
	route, known := r.byType[eventType]
	return route, known
}

func (r *routes) Types() []string { return r.types }
