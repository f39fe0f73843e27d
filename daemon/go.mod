module github.com/posthaste-dev/posthaste/daemon

go 1.26.0

require (
	github.com/posthaste-dev/posthaste v0.0.0
	github.com/santhosh-tekuri/jsonschema/v6 v6.0.3
	go.yaml.in/yaml/v3 v3.0.5
)

require golang.org/x/text v0.43.0 // indirect
