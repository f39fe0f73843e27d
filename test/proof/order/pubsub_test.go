package order_test

import (
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/googleemulator"
	"github.com/posthaste-dev/posthaste/test/kit/pubsubemulator"
)

// Over Pub/Sub too, with our emulator and with Google's, which is a broker that is not of our making.
func TestOverPubSub(t *testing.T) {
	t.Parallel()
	for name, start := range map[string]func(t *testing.T) string{
		"ours": func(t *testing.T) string {
			t.Helper()
			server, err := pubsubemulator.Start(pubsubemulator.Config{Dir: t.TempDir()})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = server.Close() })
			return server.Addr()
		},
		"Google's": func(t *testing.T) string { t.Helper(); return googleemulator.Start(t) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			plan := tiny(t)
			plan.Audit = false // it reads streams
			plan.Broker = "pubsub://order?emulator=" + start(t)
			plan.Events, plan.Production = 600, 2*time.Second
			plan.Schedule = []torture.Fault{torture.Kills(time.Second, 1)}
			if !play(t, plan).OK() {
				t.Error("it does not pass")
			}
		})
	}
}
