package main

import (
	"strings"
	"testing"
)

// TestAPauseOfAnUnknownTopicSaysSo: what no relay publishes to may be misspelt.
func TestAPauseOfAnUnknownTopicSaysSo(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const relay = "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d71"
		for _, command := range []string{"topics pause %s --reason x", "topics limit %s 5 --reason x"} {
			quiet := func(topic string) {
				t.Helper()
				line := strings.ReplaceAll(command, "%s", topic)
				if code, out, said := e.call(t, strings.Fields(line)...); code != 0 || said != "" {
					t.Errorf("%s: exit code %d\n%s%s", line, code, out, said)
				}
			}
			quiet("nobody") // is there to know
			e.exec(t, `INSERT INTO {schema}.outbox_relays (id, token, name) VALUES ($1::text::uuid, gen_random_uuid(), 'r1')
				ON CONFLICT DO NOTHING`, relay)
			e.exec(t, `INSERT INTO {schema}.outbox_beats (relay, number, at, until)
				VALUES ($1::text::uuid, 1, now(), now() + interval '1 hour') ON CONFLICT DO NOTHING`, relay)
			e.exec(t, `INSERT INTO {schema}.outbox_known (relay, event_type, topic) VALUES ($1::text::uuid, 'placed', 'orders')
				ON CONFLICT DO NOTHING`, relay)
			quiet("orders")
			line := strings.ReplaceAll(command, "%s", "oders")
			const want = "no relay that is alive publishes to \"oders\"; they know orders\n"
			if code, out, said := e.call(t, strings.Fields(line)...); code != 0 || said != want {
				t.Errorf("%s: exit code %d\n%s%s", line, code, out, said)
			}
			e.exec(t, "DELETE FROM {schema}.outbox_known")
		}
	})
}
