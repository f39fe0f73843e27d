// Command outbox-publisher is the marketplace's publisher: its contracts are compiled in, Google Pub/Sub is its
// broker unless it is told NATS, and the variables are those that its deployments have always had.
// docs/operate/publisher.md says how to run it.
package main

import (
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/examples/marketplace/settings"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
)

// version is set by the linker; see the Dockerfile. Empty: what the build knows.
var version string

func main() {
	daemon.Main(daemon.Program{
		Version:  version,
		Metrics:  prometheus.New(),
		Brokers:  []daemon.Broker{pubsubbroker.New(), natsbroker.New()},
		Keys:     settings.Keys,
		Aliases:  settings.Aliases,
		Defaults: settings.Defaults,
		NewRegistry: func(values *config.Values) (*outbox.Registry, error) {
			return events.Registry(settings.Topics(values))
		},
	})
}
