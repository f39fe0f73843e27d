package deploy

import (
	"os/exec"
	"regexp"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

// What the runbooks say about dead letters, by a database role that has the operator role and nothing else.
func TestTheOperatorsCommands(t *testing.T) {
	t.Parallel()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) {
		role := pgtest.NewRole(t, db.Server, "operator")
		admin := db.Open(t, db.URL, "search_path", db.Schema)
		for _, statement := range []string{
			"SELECT outbox_grant('operator', '" + role + "')",
			`SELECT outbox_emit('order_created', 'order', a, '{}') FROM unnest(ARRAY['a', 'a', 'b', 'c']) a`,
		} {
			if _, err := admin.Exec(t.Context(), statement); err != nil {
				t.Fatal(err)
			}
		}
		var ids []string
		if err := admin.QueryRow(t.Context(),
			"SELECT array_agg(id::text ORDER BY seq) FROM outbox_events").Scan(&ids); err != nil {
			t.Fatal(err)
		}
		// The first is dead and blocks the second, the third is dead alone, the fourth is parked.
		for i, state := range []int{4, 3, 5, 2} {
			db.Exec(t, states.Move, ids[i], state)
		}
		url := regexp.MustCompile(`//postgres@`).ReplaceAllString(db.URL, "//"+role+"@")
		for _, step := range []struct {
			verb   string
			event  int
			code   int
			says   string
			states string // of all four, after it
		}{
			{"release", 3, 0, "done, was parked", "4,3,5,1"},
			{"release", 3, 1, "not applicable, was retrying", "4,3,5,1"},
			{"dead redrive", 2, 0, "done, was dead", "4,3,1,1"},
			{"skip", 0, 0, "done, was dead and blocking", "5,1,1,1"},
			{"dead discard", 0, 0, "done, was dead", "7,1,1,1"},
			{"dead redrive", 0, 1, "not applicable, was discarded", "7,1,1,1"},
		} {
			run := exec.CommandContext(t.Context(), program(t, "outboxctl"), append(strings.Fields(step.verb),
				ids[step.event], "--reason", "on call", "--actor", "ada", "--schema", db.Schema)...)
			run.Env = []string{"POSTHASTE_DATABASE_URL=" + url}
			text, _ := run.CombinedOutput()
			if run.ProcessState.ExitCode() != step.code || !strings.Contains(string(text), ids[step.event]+" "+step.says) {
				t.Errorf("%s: exit code %d\n%s", step.verb, run.ProcessState.ExitCode(), text)
			}
			var stand string
			query := "SELECT string_agg(state::text, ',' ORDER BY seq) FROM outbox_status"
			if err := admin.QueryRow(t.Context(), query).Scan(&stand); err != nil || stand != step.states {
				t.Errorf("after %s of %d the states are %s, want %s (%v)", step.verb, step.event, stand, step.states, err)
			}
		}
		stranger := pgtest.NewRole(t, db.Server, "stranger")
		for _, verb := range []string{"dead redrive", "skip", "dead discard", "release", "dead reissue", "replay start"} {
			run := exec.CommandContext(t.Context(), program(t, "outboxctl"), append(strings.Fields(verb), ids[0], "--reason",
				"on call", "--actor", "bob", "--schema", db.Schema)...)
			run.Env = []string{"POSTHASTE_DATABASE_URL=" + pgtest.As(t, db.URL, stranger)}
			text, _ := run.CombinedOutput()
			if run.ProcessState.ExitCode() != 4 || !strings.Contains(string(text), "outboxctl grant operator ROLE") {
				t.Errorf("%s without rights: exit code %d\n%s", verb, run.ProcessState.ExitCode(), text)
			}
		}
		if n := db.Count(t,
			`SELECT count(*) FROM {schema}.outbox_actions WHERE actor = 'ada' AND reason = 'on call'`); n != 4 {
			t.Errorf("%d actions are logged", n)
		}
	})
}
