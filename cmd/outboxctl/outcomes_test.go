package main

import (
	"strings"
	"testing"
)

// TestOutcomesOfEventsThatAreNamed: each event counts once, what was changed is told with its action, and why nothing
// was done where the state alone does not say it.
func TestOutcomesOfEventsThatAreNamed(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.letters(t, 6)
		const nobody = "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7f"
		const action = "01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d71"
		const sent = " --reason x --action " + action
		ids := strings.Fields(e.text(t, "SELECT string_agg(id::text, ' ' ORDER BY seq) FROM {schema}.outbox_events"))
		is := func(id string, state int) {
			e.exec(t, "UPDATE {schema}.outbox_events SET state = $2, published_at = now() WHERE id = $1::text::uuid", id, state)
		}
		is(ids[1], 6)
		is(ids[2], 6)
		is(ids[3], 2)
		e.try(t, []jobCall{
			{line: "dead redrive " + nobody + " --reason x", code: exitNotFound, says: "redrive: there is no such event"},
			{line: "dead reissue " + nobody + " --reason x", code: exitNotFound, says: "reissue: there is no such event"},
			{
				line: "skip " + nobody + " 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d72 --reason x", code: exitNotFound,
				says: "skip: none of these events is there",
			},
			{
				line: "dead redrive " + ids[0] + " " + ids[0] + " " + nobody + sent, code: exitFailed,
				says: "redrive: 1 of 2 events, action " + action + "\n",
			},
			{line: "skip " + ids[4] + " --reason x", code: exitFailed, says: "was dead: it blocks no other event"},
			{line: "dead redrive " + ids[4] + " " + ids[4] + " --reason x", says: "redrive: 1 event, action "},
			{line: "events erase " + ids[1] + " " + ids[5] + " --reason x --yes", says: "erased 2 events"},
			{
				line: "replay start " + ids[1] + " --reason x", code: exitFailed,
				says: ids[1] + " not applicable, was published: it is erased",
			},
			{line: "dead redrive " + ids[5] + " --reason x", code: exitFailed, says: "was dead: it is erased"},
			{
				line: "replay start " + ids[2] + " --reason x --action 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d73",
				says: "asked for: 'outboxctl replay status 01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d73' shows when",
			},
			{
				line: "dead edit " + ids[3] + " --data - --reason x", input: "{}", code: exitFailed,
				says: "was parked: 'outboxctl release' has it tried again",
			},
			{line: "replay pause " + nobody + sent, code: exitFailed, says: "outboxctl: operator: pause: the action's id was"},
		})
		for _, line := range []string{"dead redrive " + ids[0], "jobs pause " + nobody, "pause --all"} {
			for flag, says := range map[string]string{
				"--reason=" + strings.Repeat("x", 2049):          "the reason has 2049 characters, the limit is 2048",
				"--reason=x --actor=a\x01":                       "the actor holds a control character",
				"--reason=x --actor=" + strings.Repeat("x", 257): "the actor has 257 characters",
			} {
				code, _, said := e.call(t, strings.Fields(line+" "+flag)...)
				if code != exitUsage || !strings.Contains(said, says) || strings.Contains(said, "(action") {
					t.Errorf("%s %.40s: exit code %d\n%s", line, flag, code, said)
				}
			}
		}
	})
}
