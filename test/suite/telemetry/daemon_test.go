package telemetry

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/daemon"
	"github.com/posthaste-dev/posthaste/daemon/config"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

var addressPattern = regexp.MustCompile(`"msg":"answering probes","address":"([^"]+)"`)

// TestAProgramHasThemWithOneLine runs a program with metrics, and asks on the address of its probes.
func TestAProgramHasThemWithOneLine(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name, survey string
		outbox       bool // whether it says something about the outbox
	}{{"surveyed", "1s", true}, {"without a survey", "0s", false}} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			db := pgtest.New(t, pgtest.Servers()[0])
			w := &env{DB: db, t: t, log: &server.Output{}, seen: map[string]map[float64]bool{}}
			registry, err := outbox.NewRegistry(outbox.Define[note](outbox.Contract{
				Type: "order_placed", Aggregate: "order", Topic: "orders",
			}))
			if err != nil {
				t.Fatal(err)
			}
			program := daemon.Program{
				Version: "v9.9.9", Registry: registry, Metrics: prometheus.New(), Brokers: []daemon.Broker{nowhere()},
			}
			ctx, stop := context.WithCancel(context.Background())
			ended := make(chan error, 1)
			go func() {
				ended <- program.Run(ctx, []string{
					"--metrics-survey=" + test.survey, "--http-listen=127.0.0.1:0", "--log-format=json",
				},
					[]string{"POSTHASTE_DATABASE_URL=" + db.URL, "POSTHASTE_DATABASE_SCHEMA=" + db.Schema}, w.log)
			}()
			defer func() {
				stop()
				if err := eventually.Receive(t, "the program has stopped", ended); err != nil {
					t.Error(err)
				}
			}()
			w.url = "http://" + address(t, w.log) + "/metrics"
			w.until(map[string]string{"relay_lanes": "= 64"})
			if test.outbox {
				w.until(map[string]string{"outbox_relays": "= 1"})
			}
			families := w.look()
			if _, there := families["posthaste_outbox_relays"]; there != test.outbox {
				t.Errorf("it speaks of the outbox: %v, want %v", there, test.outbox)
			}
			series := families["posthaste_build_info"].series
			if versions := fmt.Sprint(series); len(series) != 1 || !strings.Contains(versions, `,version="v9.9.9"`) {
				t.Errorf("the versions are %s", versions)
			}
		})
	}
}

// nowhere is a broker for a test in which nothing is published.
func nowhere() daemon.Broker {
	return daemon.Broker{
		Name: "nowhere", Open: func(context.Context, *config.Values, daemon.Options) (*daemon.Connection, error) {
			return &daemon.Connection{Publisher: publish.PublisherFunc(func(context.Context, *publish.Message) error {
				return nil
			})}, nil
		},
	}
}

// address waits until the log says where the probes are.
func address(t *testing.T, log *server.Output) string {
	t.Helper()
	var found []string
	eventually.True(t, "somebody answers", func() bool {
		found = addressPattern.FindStringSubmatch(log.String())
		return found != nil
	}, log.String)
	return found[1]
}
