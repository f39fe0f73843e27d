package doctor

import (
	"encoding/json"
	"path/filepath"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
)

// TestFleetCommands: the viewer sees lanes, relays, topics and grants, for people and for programs.
func TestFleetCommands(t *testing.T) {
	t.Parallel()
	e := newEnv(t, pgtest.Servers()[0], build(t))
	e.exec(`INSERT INTO {schema}.outbox_known (relay, event_type, topic)
		SELECT id, 'order_created', 'orders' FROM {schema}.outbox_relays`)
	e.exec(`INSERT INTO {schema}.outbox_topics (relay, topic, paused, error)
		SELECT id, 'orders', true, E'no \x1b[31mstream' FROM {schema}.outbox_relays`)
	e.exec("SELECT {schema}.outbox_pause('ada', 'wrong amounts', 'type', 'order_created')")
	viewer := pgtest.As(t, e.url, e.roles["viewer"])
	for _, command := range []struct{ name, table, field, want string }{
		{"lanes", `(?m)^ +1  steady +\S+ ago +\S+ more +0 +\d+$`, "held", "true"},
		{"relays", `(?m)^steady +alive .* 64  1-64 `, "state", `"alive"`},
		{
			"topics", `(?m)^orders  failing, paused  order_created  steady +steady, .* ago: no stream; type order_created ` +
				`paused by ada`, "topic", `"orders"`,
		},
		{"grants", `(?m)^outbox_events +SELECT +- +yes +6 columns +13 columns +13 columns +-$`, "kind", `"function"`},
	} {
		code, stdout, stderr := e.run(viewer, "", filepath.Join(e.bin, "outboxctl"), command.name, "--schema", e.schema)
		if code != 0 || stderr != "" || !matches(command.table, stdout) || matches("\x1b", stdout) {
			t.Errorf("%s: exit code %d\n%s%s", command.name, code, stdout, stderr)
		}
		code, stdout, stderr = e.run(viewer, "", filepath.Join(e.bin, "outboxctl"), command.name, "--schema", e.schema, "-o",
			"json")
		var rows []map[string]json.RawMessage
		if err := json.Unmarshal([]byte(stdout), &rows); err != nil || code != 0 || len(rows) == 0 ||
			string(rows[0][command.field]) != command.want {
			t.Errorf("%s: exit code %d, %v\n%.600s%s", command.name, code, err, stdout, stderr)
		}
	}
	code, stdout, stderr := e.run(viewer, "", filepath.Join(e.bin, "outboxctl"), "grants", "--check", "--schema", e.schema)
	if code != 0 || stderr != "" || !matches(`(?m)^viewer_\S+ +viewer$`, stdout) {
		t.Errorf("grants --check: exit code %d\n%s%s", code, stdout, stderr)
	}
	e.exec("REVOKE SELECT ON {schema}.outbox_pauses FROM {relay}")
	code, stdout, stderr = e.run(viewer, "", filepath.Join(e.bin, "outboxctl"), "grants", "--check", "--schema", e.schema)
	if code != 1 || !matches(`1 role differs`, stderr) ||
		!matches(`(?m)^relay_\S+ +relay +SELECT on outbox_pauses$`, stdout) ||
		!matches(`(?m)^fix: SELECT .*outbox_grant\('relay'`,
			stdout) {
		t.Errorf("grants --check: exit code %d\n%s%s", code, stdout, stderr)
	}
}
