package relay

import (
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// coreRegistry is a registry as the core sees it.
type coreRegistry struct {
	types  []string
	byType map[string]core.Route
}

func newCoreRegistry(registry *outbox.Registry) *coreRegistry {
	r := &coreRegistry{types: registry.Types(), byType: map[string]core.Route{}}
	for _, eventType := range r.types {
		contract, _ := registry.Contract(eventType)
		r.byType[eventType] = core.Route{
			Topic: contract.Topic, Block: contract.OnDead == outbox.OnDeadBlock, MaxAttempts: contract.MaxAttempts,
		}
	}
	return r
}

func (r *coreRegistry) Route(eventType string) (core.Route, bool) {
	contract, known := r.byType[eventType]
	return contract, known
}

func (r *coreRegistry) Types() []string { return r.types }
