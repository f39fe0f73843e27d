package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// TestColors: only on a terminal, and not where somebody does not want them.
func TestColors(t *testing.T) {
	t.Parallel()
	terminal, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("there is no terminal to open: %v", err)
	}
	defer func() { _ = terminal.Close() }()
	file, err := os.Create(t.TempDir() + "/out")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	for name, c := range map[string]struct {
		to          io.Writer
		environment map[string]string
		want        bool
	}{
		"terminal": {terminal, nil, true},
		"NO_COLOR": {terminal, map[string]string{"NO_COLOR": "1"}, false},
		"dumb":     {terminal, map[string]string{"TERM": "dumb"}, false},
		"file":     {file, nil, false},
		"pipe":     {&bytes.Buffer{}, nil, false},
	} {
		root := &rootCommand{getenv: func(name string) string { return c.environment[name] }}
		if got := root.colors(c.to); got != c.want {
			t.Errorf("%s: colours are %t, want %t", name, got, c.want)
		}
	}
}

// TestWhatIsNotThereExitsWith3: scripts tell it from a failure.
func TestWhatIsNotThereExitsWith3(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for _, line := range []string{"aggregate show order/77", "events get " + outbox.NewID().String()} {
			if code, stdout, stderr := e.call(t, strings.Fields(line)...); code != 3 || stdout != "" {
				t.Errorf("%s: exit code %d, want 3\n%s%s", line, code, stdout, stderr)
			}
		}
		for _, format := range []string{"table", "json"} { // what is known of it is told all the same
			code, stdout, stderr := e.call(t, "events", "explain", outbox.NewID().String(), "-o", format)
			if code != 3 || !strings.Contains(stdout, "not in the table") || stderr != "" {
				t.Errorf("explain -o %s: exit code %d, want 3\n%s%s", format, code, stdout, stderr)
			}
		}
	})
}

// TestErrorsSpeakToNoTerminal: also where they quote a name as it is.
func TestErrorsSpeakToNoTerminal(t *testing.T) {
	t.Parallel()
	for _, line := range [][]string{
		{"pauses", "--database-url-file", "\x1b[31mred\x07"}, {"config", "--config", "\x1b[31mred\x07"},
	} {
		if code, _, stderr := call(t, nil, line...); code == exitDone || !strings.Contains(stderr, "red") ||
			strings.ContainsAny(stderr, "\x1b\x07") {
			t.Errorf("%s: exit code %d, %q", line[1], code, stderr)
		}
	}
}

// TestExportIsWhole: all pages of it; one that was to end before the last says where it goes on.
func TestExportIsWhole(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const all = operator.MaxEventPageWithPayload + 20
		e.exec(t, fmt.Sprintf(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
			SELECT u.id, 'order_created', 'order', '1', json_build_object('eventId', u.id)
			FROM (SELECT {schema}.outbox_uuid7() AS id FROM generate_series(1, %d)) u`, all))
		const more = "there is more at --after id."
		for count, want := range map[int]int{0: all, 7: 7, all - 1: all - 1} {
			code, stdout, stderr := e.call(t, "events", "export", "--count", fmt.Sprint(count))
			if got := strings.Count(stdout, "\n"); code != exitDone || got != want ||
				strings.Contains(stderr, more) != (count > 0) {
				t.Errorf("--count %d: exit code %d, %d of %d events: %s", count, code, got, want, stderr)
			}
		}
	})
}

// TestExportGoesOnWhereNothingIsFound: what is asked for may be older than all that one page looks at, which is 5,000
// events where payloads are searched.
func TestExportGoesOnWhereNothingIsFound(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for _, batch := range [][2]int{{1, 2}, {5200, 1}} {
			e.exec(t, fmt.Sprintf(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id,
				payload_json) SELECT u.id, 'order_created', 'order', '1', json_build_object('eventId', u.id,
				'data', json_build_object('n', %d))
				FROM (SELECT {schema}.outbox_uuid7() AS id FROM generate_series(1, %d)) u`, batch[1], batch[0]))
		}
		code, stdout, stderr := e.call(t, "events", "export", "data.n:2")
		if code != exitDone || strings.Count(stdout, "\n") != 1 || strings.Contains(stderr, "more") {
			t.Errorf("exit code %d, %q: %s", code, stdout, stderr)
		}
	})
}

// TestLinesSayThatThereIsMore: a list that ends before all is shown says so, also beside lines for programs. A document
// has a field for it.
func TestLinesSayThatThereIsMore(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
			SELECT u.id, 'order_created', 'order', '1', json_build_object('eventId', u.id)
			FROM (SELECT {schema}.outbox_uuid7() AS id FROM generate_series(1, 5001)) u`)
		e.exec(t, `INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace,
			event_type, aggregate_type, aggregate_id, error_reason, payload_json) SELECT seq, id, created_at, 1, false,
			namespace, event_type, aggregate_type, aggregate_id, 'rejected', payload_json FROM {schema}.outbox_events
			ORDER BY seq LIMIT 2`)
		for line, want := range map[string][2]string{
			"events list --limit 2": {"there is more: --after id."},
			"events list data.n:2":  {"no index answers this: looked at the newest 5000 events, back to ", "--after id."},
			"dead list --limit 1":   {"there is more: --after "},
		} {
			for _, format := range []string{"table", "ndjson"} {
				code, _, stderr := e.call(t, append(strings.Fields(line), "-o", format)...)
				if code != exitDone || !strings.HasPrefix(stderr, want[0]) || !strings.Contains(stderr, want[1]) {
					t.Errorf("%s -o %s: exit code %d, %q", line, format, code, stderr)
				}
			}
			code, stdout, stderr := e.call(t, append(strings.Fields(line), "-o", "json")...)
			if code != exitDone || !strings.Contains(stdout, `"next": "`) || stderr != "" {
				t.Errorf("%s -o json: exit code %d, %.200s, %q", line, code, stdout, stderr)
			}
		}
	})
}

// TestWhatCannotBeAskedExitsWith2: also where that is found only by asking.
func TestWhatCannotBeAskedExitsWith2(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for line, want := range map[string]string{
			"events list --limit 1001":            "the limit is 1001, must be between 1 and 1000",
			"events list --after x":               `"x" is no place at which a page ended`,
			"events list --after id.x":            `"id.x" is no place at which a page ended`,
			"events export --after seq.0":         `"seq.0" is no place at which a page ended`,
			"dead list reason:nope":               `"nope": an event dies of max_attempts`,
			"dead list --after x":                 `"x" is no place at which a page ended`,
			"dead list --limit 5000":              "the limit is 5000, must be between 1 and 1000",
			"aggregate show order/1 --limit 1001": "the limit is 1001, must be between 1 and 1000",
		} {
			if code, _, stderr := e.call(t, strings.Fields(line)...); code != exitUsage || !strings.Contains(stderr, want) {
				t.Errorf("%s: exit code %d, %s", line, code, stderr)
			}
		}
	})
}

// TestWithoutRightsExitsWith4, and says once what is missing.
func TestWithoutRightsExitsWith4(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		stranger := e.as(t, "stranger")
		const grant = "outboxctl grant"
		for line, want := range map[string]string{
			"topics": grant, "events list": grant, "dead list": grant, "status": grant, "topics -o json": grant,
			"migrate status": "connect as the owner of the tables", "replay plan type:placed": grant + " viewer ROLE",
			"jobs list": grant,
		} {
			code, stdout, stderr := stranger.call(t, strings.Fields(line)...)
			if code != exitNotLetIn || stdout != "" || strings.Count(stderr, want) != 1 || strings.Contains(stderr, "25P02") {
				t.Errorf("%s: exit code %d, want 4, and once %q\n%s%s", line, code, want, stdout, stderr)
			}
		}
	})
}
