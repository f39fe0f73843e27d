package natsjetstream

import (
	"github.com/nats-io/nats.go"

	"github.com/posthaste-dev/posthaste/internal/natsheader"
)

// Attributes reads the attributes of a message from its headers, as they were when it was published.
// Headers that belong to NATS are left out.
func Attributes(header nats.Header) map[string]string { return natsheader.Decode(header) }
