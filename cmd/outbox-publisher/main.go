// Command outbox-publisher moves committed events from an outbox in PostgreSQL to NATS JetStream or Google Cloud
// Pub/Sub. Its contracts come from a file; docs/operate/publisher.md says how to run it,
// docs/reference/configuration.md has its keys.
package main

import (
	"github.com/posthaste-dev/posthaste/cmd/internal/program"
	"github.com/posthaste-dev/posthaste/daemon"
)

// version is set by the linker; see the Dockerfile. Empty: what the build knows.
var version string

func main() { daemon.Main(program.New(version)) }
