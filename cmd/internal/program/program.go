// Package program is outbox-publisher: its brokers, metrics, traces and console. outboxctl reads the same
// configuration.
package program

import (
	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/consoleserver"
	"github.com/posthaste-dev/posthaste/daemon/kafkabroker"
	"github.com/posthaste-dev/posthaste/daemon/natsbroker"
	"github.com/posthaste-dev/posthaste/daemon/otlp"
	"github.com/posthaste-dev/posthaste/daemon/pubsubbroker"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
)

// New is outbox-publisher. An empty version is what the build knows.
func New(version string) daemon.Program {
	return daemon.Program{
		Version: version, Metrics: prometheus.New(), Tracing: otlp.New(), Console: consoleserver.New(),
		Brokers: []daemon.Broker{kafkabroker.New(), natsbroker.New(), pubsubbroker.New()},
	}
}
