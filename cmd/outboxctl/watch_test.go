package main

import (
	"bufio"
	"context"
	"io"
	"net/url"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// TestALostConnectionIsMadeAnew: whoever watches goes on watching.
func TestALostConnectionIsMadeAnew(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		event := func() {
			e.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
				VALUES ($1::text::uuid, 'order_created', 'order', '1', json_build_object('eventId', $1::text))`,
				outbox.NewID().String())
		}
		event()
		address, err := url.Parse(e.url)
		if err != nil {
			t.Fatal(err)
		}
		settings := address.Query()
		settings.Set("application_name", e.schema)
		address.RawQuery = settings.Encode()
		// Lines of the look that was under way when the connection was cut do not count.
		for line, after := range map[string]int{"top": 3, "events tail --last 1": 1} {
			ctx, stop := context.WithCancel(within(t))
			reader, writer := io.Pipe()
			ended := make(chan int, 1)
			var said strings.Builder
			go func() {
				code := execute(ctx, append(strings.Fields(line), "--every", "100ms", "-o", "ndjson", "--schema", e.schema),
					writer, &said, func(name string) string {
						return map[string]string{"DATABASE_URL": address.String()}[name]
					})
				_ = writer.Close()
				ended <- code
			}()
			lines := bufio.NewScanner(reader)
			shown := lines.Scan()
			e.exec(t, "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = $1", e.schema)
			event()
			for range after {
				shown = shown && lines.Scan()
			}
			stop()
			_ = reader.Close()
			if code := <-ended; !shown || code != exitDone {
				t.Errorf("%s: it goes on: %t, exit code %d\n%s", line, shown, code, said.String())
			}
		}
	})
}
