package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/outbox"
)

// TestAuditScreen: who did what and why, what a filter leaves, and page after page.
func TestAuditScreen(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		e.shows(viewer, "audit", "Nobody has done anything yet.")
		dead := e.dead(event{aggregate: "1"})
		e.exec(`SELECT {schema}.outbox_act('ben <b>', 'the <i>customer</i> exists', 'redrive', ARRAY[$1]::uuid[])`,
			dead.String())
		e.exec(`SELECT {schema}.outbox_pause('ann', 'it moves', 'topic', 'orders')`)
		job := outbox.NewID().String()
		e.exec(`SELECT {schema}.outbox_start_job('cleo', 'all of them', 'redrive', '', 10, 0, action_id => $1::uuid)`, job)
		e.exec(`SELECT {schema}.outbox_change_job('cleo', 'wait', 'pause', $1::uuid)`, job)
		body := e.shows(viewer, "audit", "ben <b>", "the <i>customer</i> exists", "redrive", "events/"+dead.String(),
			"topic orders", "ann", "it moves", "cleo")
		e.hides(body, "<b>", "<i>", "Older")
		if links := strings.Count(body, "jobs/"+job); links != 2 {
			t.Errorf("%d lines lead to the job, want 2", links)
		}
		e.hides(e.shows(viewer, "audit?actor=ann", "it moves"), "ben")
		e.hides(e.shows(viewer, "audit?verb=redrive", "ben", "cleo"), "it moves")
		e.hides(e.shows(viewer, "audit?event="+dead.String(), "ben"), "it moves")
		body = e.shows(viewer, "audit?until=2020-01-01", "Nothing of this is in the log.", `value="2020-01-01T00:00"`)
		e.hides(body, "it moves")
		e.shows(viewer, "audit?since=2020-01-01T10:30", "it moves", `value="2020-01-01T10:30"`)
		for range 60 {
			e.exec(`SELECT {schema}.outbox_pause('ann', 'again', 'topic', gen_random_uuid()::text)`)
		}
		body = e.shows(viewer, "audit", "Older")
		_, after, _ := strings.Cut(body, "after=")
		after, _, _ = strings.Cut(after, `"`)
		e.shows(viewer, "audit?after="+after, "ben", "Newest")
		e.isForbidden("audit", tenants)
		for _, wrong := range []string{
			"since=soon", "verb=stop", "event=1", "after=x", "since=2030-01-01&until=2020-01-01", "actor=a%00b",
		} {
			if got := e.as(viewer, path("audit?%s", wrong), nil); got.status != http.StatusBadRequest {
				t.Errorf("%s: status %d", wrong, got.status)
			}
		}
	})
}
