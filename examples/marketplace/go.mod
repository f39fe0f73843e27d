module github.com/posthaste-dev/posthaste/examples/marketplace

go 1.25.0

require github.com/posthaste-dev/posthaste v0.0.0
