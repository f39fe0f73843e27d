package docs_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/broker/natsjetstream"
	"github.com/posthaste-dev/posthaste/consumer"
	"github.com/posthaste-dev/posthaste/examples/marketplace/events"
	"github.com/posthaste-dev/posthaste/inbox"
	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/telemetry/otel"
	"github.com/posthaste-dev/posthaste/telemetry/prometheus"
)

// What docs/guide/consumers.md shows, so that it is known to compile.
var _ = func(ctx context.Context, pool *pgxpool.Pool, js jetstream.JetStream) error {
	compliance, err := consumer.New(consumer.Config{Name: "compliance"},
		consumer.On(events.LicenseStatusChanged,
			func(ctx context.Context, event *consumer.Event, license events.LicenseStatusChangedV1) error {
				return outbox.InTx(ctx, pool, func(ctx context.Context, tx pgx.Tx) error {
					first, err := inbox.First(ctx, tx, "compliance", event.ID)
					if err != nil {
						return err
					}
					if !first {
						return consumer.ErrDuplicate
					}
					_, err = tx.Exec(ctx, "INSERT INTO notices (license_id, status) VALUES ($1, $2)", license.LicenseID,
						license.Status)
					return err
				})
			}))
	if err != nil {
		return err
	}
	return natsjetstream.Consume(ctx, js, compliance, natsjetstream.ConsumeConfig{
		Stream: "EVENTS", DeadLetters: "dead.compliance",
	})
}

var _ = func(config consumer.Config,
	handle func(context.Context, *consumer.Event, events.LicenseStatusChangedV1) error,
) (*consumer.Consumer, error) {
	compliance, err := consumer.New(config,
		consumer.On(events.LicenseStatusChanged, handle),
		consumer.Ignore("order_created", "media_uploaded")) // acknowledged, and not looked at
	return compliance, err
}

var _ = func(err error) error {
	if failed := new(pgconn.ConnectError); errors.As(err, &failed) {
		return &consumer.DelayError{After: 5 * time.Second, Err: err} // for as long as it takes
	}
	return err
}

var _ = func(guard *redisinbox.Guard) consumer.Config {
	metrics := prometheus.NewConsumers()
	config := consumer.Config{
		Name: "compliance", Observe: metrics.Observe,
		Middleware: []consumer.Middleware{otel.Process(otel.Config{System: "nats"}), guard.Once},
	}
	return config
}

// TestThePageShowsWhatCompiles: all its code is in this file, but for what it calls wrong.
func TestThePageShowsWhatCompiles(t *testing.T) {
	t.Parallel()
	flat := func(text string) string { return strings.Join(strings.Fields(text), " ") }
	read := func(name string) string {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	file, shown := flat(read("consumers_test.go")), 0
	for _, rest := range strings.Split(read("../../../docs/guide/consumers.md"), "```go\n")[1:] {
		code, _, _ := strings.Cut(rest, "```")
		if strings.Contains(code, "WRONG") {
			continue
		}
		if shown++; !strings.Contains(file, flat(code)) {
			t.Errorf("docs/guide/consumers.md shows what is not in page_test.go:\n%s", code)
		}
	}
	if shown != 4 {
		t.Errorf("%d pieces of code were compared", shown)
	}
}
