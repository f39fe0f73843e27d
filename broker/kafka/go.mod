module github.com/posthaste-dev/posthaste/broker/kafka

go 1.26.0

require (
	github.com/posthaste-dev/posthaste v0.0.0
	github.com/twmb/franz-go v1.22.2
	github.com/twmb/franz-go/pkg/kmsg v1.15.0
)
