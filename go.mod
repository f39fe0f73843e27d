module github.com/posthaste-dev/posthaste

go 1.25.0
