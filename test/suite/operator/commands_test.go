package operator

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// want calls outboxctl and wants an exit code and what the expression says on stdout.
func (e *env) want(t *testing.T, role string, code int, says string, args ...string) (stdout, stderr string) {
	t.Helper()
	got, stdout, stderr := e.call(t, role, args...)
	if got != code || !regexp.MustCompile(says).MatchString(stdout) {
		t.Errorf("%q: exit code %d, want %d and %s\n%s%s", args, got, code, says, stdout, stderr)
	}
	return stdout, stderr
}

// line is a row of a table with these columns.
func line(columns ...string) string { return `(?m)^\s*` + strings.Join(columns, `\s+`) + `\s*$` }

// decode reads a document that a command printed.
func decode[T any](t *testing.T, text string) (value T) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &value); err != nil {
		t.Fatalf("%v: %s", err, text)
	}
	return value
}

// TestEventsCommands: what people and programs see of events, as a viewer; and payloads as the owner.
func TestEventsCommands(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		ids := e.emitDead(t)
		dead, waiting := ids[0].String(), ids[1].String()
		fine := e.emit(t, billed.New("9", order{N: 4}))[0]
		e.answers(func(*publish.Message) error { return nil })
		const age = `\S+ ago`
		e.want(t, e.role, 0, line(age, "dead and blocking", "order_placed", "order/1", "1", dead, "rejected: no such field"),
			"events", "list", "state:dead")
		e.want(t, e.role, 0, line(age, "waiting", "order_shipped", "order/1", waiting), "events", "list",
			"aggregate:order/1", "type:order_shipped")
		e.want(t, e.role, 0, line("no event meets this"), "events", "list", "tenant:nobody")
		if _, stderr := e.want(t, e.role, 0, dead, "events", "list", "error:such field"); stderr != "" {
			t.Errorf("it has looked at all of them, and says %s", stderr)
		}
		if _, stderr := e.want(t, e.role, 0, "", "events", "list", "--limit", "1"); !strings.Contains(stderr,
			"there is more: --after id."+fine.String()) {
			t.Errorf("it does not say that there is more: %s", stderr)
		}
		stdout, _ := e.want(t, e.role, 0, "", "events", "list", "type:order_placed", "-o", "json")
		page := decode[operator.EventPage](t, stdout)
		if len(page.Events) != 1 || page.Events[0].ID.String() != dead || page.Events[0].State != "dead and blocking" ||
			page.Events[0].Topic != "orders" || !page.Window.Complete {
			t.Errorf("got %s", stdout)
		}
		stdout, _ = e.want(t, e.role, 0, "", "events", "list", "-o", "ndjson")
		if got := strings.Count(stdout, "\n"); got != 3 {
			t.Errorf("%d lines: %s", got, stdout)
		}
		for _, c := range []struct {
			code int
			want string
			args []string
		}{
			{2, `there is no field "typ": did you mean type?`, []string{"events", "list", "typ:x"}},
			{2, "must be between 1 and 1000", []string{"events", "list", "--limit", "2000"}},
			{4, "may not read payloads", []string{"events", "list", "data.n:4"}},
			{4, "may not read payloads", []string{"events", "get", dead, "--payload"}},
			{4, "may not read payloads", []string{"events", "export"}},
			{3, "events explain " + dead[:35], []string{"events", "get", dead[:35] + "0"}},
			{2, `"x" is no id of an event`, []string{"events", "get", "x"}},
			{2, "name one event", []string{"events", "explain"}},
			{2, "is too often", []string{"events", "tail", "--every", "1ms"}},
			{2, "name one aggregate as TYPE/ID", []string{"aggregate", "show", "order"}},
			{3, "order/77 has no event", []string{"aggregate", "show", "order/77"}},
			{2, "of dead letters it can have", []string{"dead", "list", "state:dead"}},
			{2, `"x": an event dies of`, []string{"dead", "list", "reason:x"}},
		} {
			if code, _, stderr := e.call(t, e.role, c.args...); code != c.code || !strings.Contains(stderr, c.want) {
				t.Errorf("%q: exit code %d, want %d and %q\n%s", c.args, code, c.code, c.want, stderr)
			}
		}
		e.want(t, e.role, 0, `(?s)order_placed `+dead+` is dead and blocking
aggregate  order/1 in default
topic      orders
created .* ago
held .*
number     1 in lane \d+, held by main
attempts   1
error      rejected: no such field
failed     1, .* ago, terminal: rejected: no such field
died .*, rejected: .*no such field`, "events", "get", dead)
		e.want(t, "", 0, `payload    {"version":1,.*"n":4`, "events", "get", fine.String(), "--payload")
		stdout, _ = e.want(t, e.role, 0, "", "events", "get", dead, "-o", "json")
		if detail := decode[operator.EventDetail](t, stdout); detail.Holder.Relay != "main" || !detail.Holder.Alive ||
			len(detail.DeadLetters) != 1 || detail.DeadLetters[0].Reason != "rejected" || detail.Payload != nil {
			t.Errorf("got %s", stdout)
		}
		stdout, _ = e.want(t, e.role, 0, "", "events", "explain", waiting, "-o", "json")
		if found := decode[operator.Explanation](t, stdout); !found.Waits || found.Causes[0].Code != "behind_dead" {
			t.Errorf("got %s", stdout)
		}
		e.want(t, e.role, 0, `(?s)order/1 has 2 events, lane \d+ held by main
later events wait behind order_placed `+dead+`, which is dead and blocking.*waiting.*order_shipped`, "aggregate",
			"show", "order/1")
		e.want(t, e.role, 0, line(age, "rejected", "order_placed", "order/1", "orders", "1", "yes", dead, ".*no such field"),
			"dead", "list", "topic:orders")
		e.want(t, e.role, 0, `nothing is dead that meets this`, "dead", "list", "topic:bills")
		stdout, _ = e.want(t, e.role, 0, "", "dead", "list", "-o", "json")
		if !strings.Contains(stdout, `"event": "`+dead+`"`) || !strings.Contains(stdout, `"blocking": true`) {
			t.Errorf("got %s", stdout)
		}
	})
}

// TestEventsExport: whole events, page by page, and on where it was stopped.
func TestEventsExport(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		var events []outbox.Event
		for i := range 250 {
			events = append(events, shipped.New(fmt.Sprint(i), order{N: i}))
		}
		e.emit(t, events...)
		read := func(stdout string) (numbers []int) {
			for one := range strings.Lines(stdout) {
				event := decode[struct {
					Payload struct {
						Data order `json:"data"`
					} `json:"payload"`
				}](t, one)
				numbers = append(numbers, event.Payload.Data.N)
			}
			return numbers
		}
		stdout, stderr := e.want(t, "", 0, "", "events", "export", "type:order_shipped")
		if all := read(stdout); len(all) != 250 || all[0] != 249 || all[249] != 0 ||
			!regexp.MustCompile(`^250 events in \S+, \d+/s\n$`).MatchString(stderr) {
			t.Errorf("%d events: %s", len(all), stderr)
		}
		stdout, stderr = e.want(t, "", 0, "", "events", "export", "--count", "120")
		_, after, _ := strings.Cut(stderr, "there is more at --after ")
		if got := read(stdout); len(got) != 120 || after == "" {
			t.Fatalf("%d events: %s", len(got), stderr)
		}
		stdout, _ = e.want(t, "", 0, "", "events", "export", "--after", strings.TrimSpace(after))
		if got := read(stdout); len(got) != 130 || got[0] != 129 {
			t.Errorf("the rest is %d events", len(got))
		}
		stdout, _ = e.want(t, e.role, 0, "", "events", "export", "--no-payload", "data", "--count", "0", "--help")
		if !strings.Contains(stdout, "outboxctl events export") {
			t.Error("no help")
		}
		stdout, _ = e.want(t, e.role, 0, "", "events", "export", "--no-payload")
		if strings.Count(stdout, "\n") != 250 || strings.Contains(stdout, "payload") {
			t.Errorf("without payloads: %.300s", stdout)
		}
	})
}

// TestEventsTail: new events and what becomes of them, in order, until there were enough lines.
func TestEventsTail(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		old := e.emit(t, shipped.New("1", order{}))[0]
		tail := e.viewer.Tail(operator.Filter{})
		next := func() string {
			t.Helper()
			changes, left, err := tail.Next(t.Context(), 10)
			if err != nil || left {
				t.Fatal(err, left)
			}
			var list []string
			for _, change := range changes {
				list = append(list, fmt.Sprintf("%s %s>%s", change.AggregateID, change.Was, change.State))
			}
			return strings.Join(list, ", ")
		}
		if got := next(); got != "1 >ready" {
			t.Errorf("first: %s", got)
		}
		if got := next(); got != "" {
			t.Errorf("nothing has happened, and it says %s", got)
		}
		ids := e.emit(t, placed.New("2", order{}), shipped.New("3", order{}))
		e.move(t, old, int(state.Published))
		if got := next(); got != "1 ready>published, 2 >ready, 3 >ready" {
			t.Errorf("then: %s", got)
		}
		e.move(t, ids[0], int(state.Parked))
		e.move(t, ids[1], int(state.Published))
		if got := next(); got != "2 ready>parked, 3 ready>published" {
			t.Errorf("then: %s", got)
		}
		quiet := e.viewer.Tail(operator.Filter{States: []string{"dead"}})
		if changes, _, err := quiet.Next(t.Context(), 0); err != nil || len(changes) != 0 {
			t.Errorf("%v, %v", changes, err)
		}
		e.Exec(t, `INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace,
			event_type, aggregate_type, aggregate_id, error_reason, payload_json) SELECT seq, id, created_at, 1, false,
			namespace, event_type, aggregate_type, aggregate_id, 'rejected', payload_json FROM {schema}.outbox_events
			WHERE id = $1::text::uuid`, ids[0].String())
		e.move(t, ids[0], int(state.Dead))
		if changes, _, err := quiet.Next(t.Context(), 0); err != nil || len(changes) != 1 || changes[0].ID != ids[0] {
			t.Errorf("%v, %v", changes, err)
		}
		e.want(t, e.role, 0, `(?s)\d\d:\d\d:\d\dZ  `+old.String()+`  order_shipped  order/1  published\n.*order/3`, "events",
			"tail", "--count", "3")
		// It waits for what comes.
		ended := e.begin(t, e.role, "events", "tail", "--last", "0", "--count", "1", "-o", "ndjson", "--every", "100ms")
		var shown called
		eventually.True(t, "a line", func() bool {
			e.emit(t, shipped.New("4", order{}))
			select {
			case shown = <-ended:
				return true
			default:
				return false
			}
		})
		if change := decode[operator.Change](t, shown.stdout); change.AggregateID != "4" || change.State != "ready" {
			t.Errorf("got %+v", shown)
		}
	})
}
