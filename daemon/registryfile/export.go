package registryfile

import (
	"fmt"

	"go.yaml.in/yaml/v3"

	"github.com/posthaste-dev/posthaste/outbox"
)

// Export writes the contracts of a registry as a file that [Load] reads: what is routed where. What a
// compiled contract checks of its payload is Go and stays there; the file is a begin for schemas.
func Export(registry *outbox.Registry) ([]byte, error) {
	type contract struct {
		Type        string `yaml:"type"`
		Version     int    `yaml:"version"`
		Aggregate   string `yaml:"aggregate"`
		Topic       string `yaml:"topic"`
		OnDead      string `yaml:"on_dead,omitempty"`
		MaxAttempts int    `yaml:"max_attempts,omitempty"`
	}
	var file struct {
		Contracts []contract `yaml:"contracts"`
	}
	for _, eventType := range registry.Types() {
		from, _ := registry.Contract(eventType)
		to := contract{
			Type: from.Type, Version: from.Version, Aggregate: from.Aggregate, Topic: from.Topic, MaxAttempts: from.MaxAttempts,
		}
		if from.OnDead == outbox.OnDeadBlock {
			to.OnDead = "block"
		}
		file.Contracts = append(file.Contracts, to)
	}
	text, err := yaml.Marshal(file)
	if err != nil {
		return nil, fmt.Errorf("registry: %w", err)
	}
	return text, nil
}
