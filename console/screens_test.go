package console_test

import (
	"encoding/json"
	"html"
	"net/http"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/console/access"
	"github.com/posthaste-dev/posthaste/outbox"
)

// TestScreensShowWhatIsThere: each of the first screens, as a viewer.
func TestScreensShowWhatIsThere(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		ready := e.emit(event{aggregate: "eu/4711", tenant: "acme"})
		dead := e.dead(event{aggregate: "7", kind: "order_paid", failure: "no such customer 12"})
		e.sees(viewer, path(""), "Broken", "Events per second", "no relay")
		e.sees(viewer, path("events"), ready.String(), dead.String(), "order_created", "eu/4711", "acme")
		e.sees(viewer, path("events?q=%s", "state%3Adead"), dead.String())
		if body := e.sees(viewer, path("events?q=type%%3Aorder_created")); strings.Contains(body, dead.String()) {
			t.Error("the filter lets others pass")
		}
		e.sees(viewer, path("events/%s", dead), "no such customer 12", "died: max attempts", "outboxctl events explain")
		e.sees(viewer, path("aggregate?type=order&id=7"), "blocks later ones", dead.String())
		e.sees(viewer, path("aggregate?type=order&id=eu%%2F4711"), ready.String())
		e.sees(viewer, path("dead"), dead.String(), "no such customer 12", "max attempts")
		e.sees(viewer, path("problems"), "order_paid", "max attempts", "no such customer &lt;n&gt;")
		e.sees(viewer, path("jobs"), "There is no job")
		if got := e.as(viewer, "/", nil); got.status != http.StatusSeeOther || got.header.Get("Location") != "/o/shop/" {
			t.Errorf("the start is %d to %s", got.status, got.header.Get("Location"))
		}
	})
}

// TestPayloadsAreShownWhole and every look is in the log of actions.
func TestPayloadsAreShownWhole(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		large := strings.Repeat("payload ", 131_072)
		id := e.emit(event{
			aggregate: "1", payload: `{"eventId":"%s","data":{"n":12345678901234567890123,"t":"` + large + `"}}`,
		})
		if body := e.sees(viewer, path("events/%s", id)); strings.Contains(body, "12345678901234567890123") {
			t.Error("a page shows the payload without being asked")
		}
		if got := e.as(viewer, path("events/%s", id), url.Values{}); got.status != http.StatusForbidden {
			t.Errorf("a viewer gets %d for a payload", got.status)
		}
		body := e.does(operates, path("events/%s", id)).body
		if !strings.Contains(body, "12345678901234567890123") || !strings.Contains(body, large) {
			t.Error("the payload is not shown as it is")
		}
		if looks := e.one(`SELECT count(*)::text || ' by ' || min(actor) FROM {schema}.outbox_actions
			WHERE verb = 'look' AND event_id = $1`, id.String()); looks != "1 by olga" {
			t.Errorf("the log has %s", looks)
		}
	})
}

// TestVerbsDoWhatTheySay by the forms of the pages, once however often a form is sent.
func TestVerbsDoWhatTheySay(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		first, second := e.dead(event{aggregate: "1", failure: "x"}), e.dead(event{aggregate: "2", failure: "x"})
		both := []string{"id", first.String(), "id", second.String()}
		e.sees(operates, path("act/redrive?%s", url.Values{"id": {first.String(), second.String()}}.Encode()),
			first.String(), "Redrive 2", "They are tried again")
		if got := e.as(operates, path("act/redrive"), form(both...)); got.status != http.StatusBadRequest {
			t.Errorf("without a reason: %d", got.status)
		}
		again := slices.Concat(both, []string{"reason", "repaired", "action", outbox.NewID().String()})
		if body := e.does(operates, path("act/redrive"), again...).body; !strings.Contains(body, "2 done") {
			t.Error(text(body))
		}
		if body := e.does(operates, path("act/redrive"), again...).body; !strings.Contains(body, "2 done before") {
			t.Error(text(body))
		}
		if n := e.one(`SELECT count(*)::text FROM {schema}.outbox_actions WHERE verb = 'redrive' AND actor = 'olga'
			AND reason = 'repaired'`); n != "2" {
			t.Errorf("the log has %s redrives", n)
		}
		if body := e.sees(viewer, path("dead")); strings.Contains(body, "/act/") {
			t.Error("a viewer is shown verbs")
		}
	})
}

// TestEditMakesANewEvent with other data, and refuses what is no JSON without losing it.
func TestEditMakesANewEvent(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.dead(event{
			aggregate: "1", failure: "at '/total': must be above 0", payload: `{"eventId":"%s","data":{"total":-5}}`,
		})
		if body := e.does(operates, path("events/%s", id)).body; !strings.Contains(body, "<mark>") {
			t.Error("what breaks the contract is not marked")
		}
		if body := e.does(operates, path("events/%s/edit", id)).body; !strings.Contains(body, `&#34;total&#34;: -5`) {
			t.Error(text(body))
		}
		body := e.does(operates, path("events/%s/reissue", id), "reason", "x", "data", `{"total": 5`).body
		if !strings.Contains(body, "This is no JSON") || !strings.Contains(body, `{&#34;total&#34;: 5`) {
			t.Error(text(body))
		}
		e.does(operates, path("events/%s/reissue", id), "reason", "the sum was wrong", "data", `{"total": 5}`)
		var data struct{ Total int }
		made := e.one(`SELECT (payload_json->'data')::text FROM {schema}.outbox_events
			WHERE headers->>'reissue_of' = $1 OR payload_json->>'reissue_of' = $1`, id.String())
		if err := json.Unmarshal([]byte(made), &data); err != nil || data.Total != 5 {
			t.Errorf("the new event has %+v, %v", data, err)
		}
	})
}

// TestAnEditIsHeldToItsContract before an event is made, where the console knows it.
func TestAnEditIsHeldToItsContract(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.dead(event{aggregate: "1", kind: "order_checked", failure: "no"})
		body := e.does(operates, path("events/%s/reissue", id), "reason", "a slip", "data", `{"total": "five"}`).body
		for _, want := range []string{
			"This breaks the contract of order_checked", "total", `{&#34;total&#34;: &#34;five&#34;}`, `value="a slip"`,
		} {
			if !strings.Contains(body, want) {
				t.Errorf("the page does not have %q: %s", want, text(body))
			}
		}
		made := `SELECT count(*)::text FROM {schema}.outbox_events WHERE event_type = 'order_checked'`
		if n := e.one(made); n != "1" {
			t.Errorf("there are %s events", n)
		}
		e.does(operates, path("events/%s/reissue", id), "reason", "a slip", "data", `{"total": 5}`)
		if n := e.one(made); n != "2" {
			t.Errorf("there are %s events", n)
		}
	})
}

// TestJobsArePlannedStartedAndSteered from the pages.
func TestJobsArePlannedStartedAndSteered(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for range 3 {
			e.dead(event{aggregate: outbox.NewID().String(), kind: "order_paid", failure: "refused by the bank"})
		}
		shown := e.sees(operates, path("problems"), "verb=redrive")
		all := regexp.MustCompile(`href="([^"]*/dead[?][^"]*)"`).FindStringSubmatch(shown)
		if all == nil {
			t.Fatal("problems lead to no dead letters")
		}
		e.sees(operates, unescape(all[1]), "order_paid", "refused by the bank")
		filter := url.QueryEscape(`type:order_paid error:"refused by the bank"`)
		page := e.sees(operates, path("replay?verb=redrive&q=%s", filter), "3 events", "Start the job")
		fields := hidden(page)
		fields.Set("reason", "the bank is back")
		got := e.as(operates, path("replay"), fields)
		if got.status != http.StatusSeeOther {
			t.Fatalf("start: %d %s", got.status, text(got.body))
		}
		job := got.header.Get("Location")
		e.sees(viewer, job, "running", "0 of 3 done", "the bank is back", "The job is started")
		id, _, _ := strings.Cut(strings.TrimPrefix(job, "/o/shop/jobs/"), "?")
		e.does(operates, path("jobs/%s/pause", id), "reason", "lunch")
		e.sees(viewer, path("jobs/%s", id), "paused")
		e.sees(viewer, path("jobs"), "order_paid", "paused", "olga")
		e.does(operates, path("jobs/%s/cancel", id), "reason", "enough")
		e.sees(viewer, path("jobs/%s", id), "canceled")
	})
}

// hidden are the fields of the form that a page sends with a POST.
func hidden(page string) url.Values {
	values := url.Values{}
	_, rest, _ := strings.Cut(page, `method="post"`)
	for _, piece := range strings.Split(rest, `type="hidden" name="`)[1:] {
		name, after, _ := strings.Cut(piece, `" value="`)
		value, _, _ := strings.Cut(after, `"`)
		values.Add(name, unescape(value))
	}
	return values
}

func unescape(text string) string {
	return html.UnescapeString(text)
}

// TestWhatIsNotUnderstoodIsSaid: bad parameters end with 400 or 404, and never with 500.
func TestWhatIsNotUnderstoodIsSaid(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for target, status := range map[string]int{
			path("events?q=state%%3Anone"): 400, path("events?limit=501"): 400, path("events?limit=-1"): 400,
			path("events?q=%s", strings.Repeat("x", 3_000)): 400, path("?minutes=9999999"): 400, path("events/none"): 404,
			path("events/%s", outbox.NewID()): 404, path("jobs/%s", outbox.NewID()): 404, path("nothing"): 404,
			path("events?after=%%00"): 400, path("events?q=topic%%3Anone"): 400, path("events?after=seq.5"): 400,
			path("aggregate"): 400, path("aggregate?type=a&id=%%ff"): 400,
			path("events?after=nonsense"): 400, path("act/drop?id=%s", outbox.NewID()): 404,
			path("act/redrive"): 400, path("replay?verb=redrive&rate=-1"): 400, path("replay?verb=redrive&rate=NaN"): 400,
			path("export?format=exe"): 400, "/o/none/": 404, "/assets/none": 404, path("events?q=%%zz"): 400,
		} {
			if got := e.as(operates, target, nil); got.status != status {
				t.Errorf("%s: %d, wanted %d: %s", target, got.status, status, text(got.body))
			}
		}
	})
}

// TestEveryAnswerIsGuarded by the policy of what a page may load, errors as well.
func TestEveryAnswerIsGuarded(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for _, target := range []string{
			path(""), path("events/none"), "/assets/console.js", "/nothing", path("export?format=csv"),
		} {
			for _, user := range []access.User{viewer, {}} {
				got := e.as(user, target, nil)
				if policy := got.header.Get("Content-Security-Policy"); !strings.Contains(policy, "default-src 'none'") ||
					strings.Contains(policy, "unsafe") {
					t.Errorf("%s has the policy %q", target, policy)
				}
				if got.header.Get("X-Content-Type-Options") != "nosniff" {
					t.Errorf("%s may be sniffed", target)
				}
			}
		}
	})
}

// TestACancelThatIsNotOverSaysSo: copies that a relay has in its hands it may still send, and give back.
func TestACancelThatIsNotOverSaysSo(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		event, job := e.emit(event{aggregate: "1"}), outbox.NewID()
		e.joins("relay-a", "1 hour", 1, 64)
		e.exec(`UPDATE {schema}.outbox_events SET state = 6, published_at = now() WHERE id = $1`, event.String())
		e.exec(`INSERT INTO {schema}.outbox_jobs (id, verb, filter, most, expected, actor, reason, last_seq, state, ended_at,
				error) VALUES ($1, 'redeliver', 'type:order_created', 100, 1, 'olga', 'x', 1, 'failed', now(), 'no')`, job.String())
		e.exec(`SELECT FROM {schema}.outbox_redeliver('olga', 'x', ARRAY[$1::text::uuid], NULL, NULL, $2::text::uuid)`,
			event.String(), job.String())
		e.exec(`UPDATE {schema}.outbox_requests r SET taken = 1, taken_by = (SELECT l.token FROM {schema}.outbox_lanes l
			WHERE l.lane = r.lane)`)
		e.sees(operates, path("jobs/%s", job), "/cancel", "1 open")
		open := `SELECT count(*)::text FROM {schema}.outbox_requests WHERE canceled_at IS NULL`
		cancel := func(notice, left string) {
			got := e.does(operates, path("jobs/%s/cancel", job), "reason", "enough")
			if to := got.header.Get("Location"); !strings.HasSuffix(to, "notice="+notice) || e.one(open) != left {
				t.Errorf("it leads to %s, and %s are open", to, e.one(open))
			}
		}
		cancel("partly", "1")
		e.sees(operates, path("jobs/%s?notice=partly", job), "cancel again to be sure", "sentence warn")
		e.exec(`UPDATE {schema}.outbox_requests SET taken = 0, taken_by = NULL`)
		cancel("cancel", "0")
	})
}
