package operator

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// fail writes so many failed attempts of an event, each with another number in its words.
func (e *env) fail(t *testing.T, id outbox.ID, times int) {
	t.Helper()
	e.Exec(t, `INSERT INTO {schema}.outbox_attempts (event_id, number, relay, class, topic, error)
		SELECT $1::text::uuid, i, gen_random_uuid(), 'rejected', 'orders', i || ' bytes are too many'
		FROM generate_series(1, $2::int) i`, id.String(), times)
}

func (e *env) problems(t *testing.T) *operator.Problems {
	t.Helper()
	found, err := e.viewer.Problems(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestProblemsCount: what is resolved or published is no problem, an event is one event however its errors differ, and
// what was not looked at is owned up to, also to programs.
func TestProblemsCount(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		dead := e.emitDead(t)[0]
		e.answers(nil) // what waits behind it goes out
		e.act(t, e.owner().Discard, dead)
		if found := e.problems(t); len(found.Problems) != 0 || found.Letters != 1 || !found.Complete {
			t.Errorf("with a letter that is resolved: %+v", found)
		}
	})
	onEach(t, func(t *testing.T, e *env) {
		ids := e.emit(t, shipped.New("1", order{}), shipped.New("2", order{}))
		e.fail(t, ids[0], 3)
		e.move(t, ids[0], int(state.Published))
		if found := e.problems(t); len(found.Problems) != 0 || found.Attempts != 3 {
			t.Errorf("of an event that was published after all: %+v", found)
		}
		e.fail(t, ids[1], 2500)
		e.move(t, ids[1], int(state.Retrying))
		found := e.problems(t)
		if len(found.Problems) != 1 || found.Problems[0].Count != 2500 || found.Problems[0].Events != 1 ||
			!found.Complete {
			t.Errorf("of one event with 2,500 attempts: %+v", found)
		}
		e.wantProblems(t, true)
		e.Exec(t, "DELETE FROM {schema}.outbox_attempts WHERE event_id = $1::text::uuid", ids[1].String())
		e.fail(t, ids[1], 10_000)
		if found := e.problems(t); found.Complete || found.Attempts != 10_000 {
			t.Errorf("with more than are looked at: %+v", found)
		}
		e.wantProblems(t, false)
	})
}

// wantProblems asks by the command: one problem, and whether that is all.
func (e *env) wantProblems(t *testing.T, complete bool) {
	t.Helper()
	code, stdout, stderr := e.call(t, e.role, "problems", "-o", "json")
	var all operator.Problems
	if err := json.Unmarshal([]byte(stdout), &all); err != nil || code != 0 || stderr != "" || len(all.Problems) != 1 ||
		all.Complete != complete || all.Attempts == 0 {
		t.Errorf("json: %d %v %q %s", code, err, stderr, stdout)
	}
	for _, format := range []string{"ndjson", "table"} {
		code, stdout, stderr = e.call(t, e.role, "problems", "-o", format)
		if code != 0 || strings.Contains(stdout, "there may be more") ||
			strings.Contains(stderr, "there may be more") == complete {
			t.Errorf("%s: %d %q %s", format, code, stderr, stdout)
		}
	}
}
