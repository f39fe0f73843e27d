// Package serverstest names the PostgreSQL servers that tests use: the oldest version that the outbox needs, and the
// newest.
package serverstest

import (
	"os"
	"testing"
)

// addresses are those of services/services, unless the environment names others.
var addresses = map[string][2]string{
	"postgres18": {"SERVICES_POSTGRES18_URL", "postgres://postgres@127.0.0.1:15418/posthaste?sslmode=disable"},
	"postgres15": {"SERVICES_POSTGRES15_URL", "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable"},
}

// OnEach runs a test on each server, on all at the same time.
func OnEach(t *testing.T, test func(t *testing.T, address string)) {
	t.Helper()
	for name, server := range addresses {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			address := server[1]
			if given := os.Getenv(server[0]); given != "" {
				address = given
			}
			test(t, address)
		})
	}
}
