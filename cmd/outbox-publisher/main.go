// Command outbox-publisher moves committed events from an outbox in PostgreSQL to NATS JetStream or Google Cloud
// Pub/Sub. Its contracts come from a file; docs/operate/publisher.md says how to run it,
// docs/reference/configuration.md has its keys.
package main

import (
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
	"github.com/posthaste-dev/posthaste/daemon/otlp"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
)

// version is set by the linker; see the Dockerfile. Empty: what the build knows.
var version string

func program() daemon.Program {
	return daemon.Program{
		Version: version, Metrics: prometheus.New(), Tracing: otlp.New(),
		Brokers: []daemon.Broker{natsbroker.New(), pubsubbroker.New()},
	}
}

func main() { daemon.Main(program()) }
