package operator_test

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

func (e *env) wantErased(a operator.Action, want string, events ...outbox.ID) {
	e.t.Helper()
	results, err := e.operator.Erase(e.t.Context(), a, events...)
	if err != nil {
		e.t.Fatal(err)
	}
	var got []string
	for i, result := range results {
		if result.Event != events[i] {
			e.t.Errorf("result %d is of %s, want %s", i, result.Event, events[i])
		}
		got = append(got, strings.TrimSpace(string(result.Outcome)+" "+result.Was))
	}
	if text := strings.Join(got, ", "); text != want {
		e.t.Errorf("erase: %s\nwant %s", text, want)
	}
}

// withSecret is an event in a state, with headers and a payload that must go.
func (e *env) withSecret(aggregate string, is state.State) outbox.ID {
	e.t.Helper()
	id := outbox.NewID()
	e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, headers)
		VALUES ($1::text::uuid, 'placed', 'order', $2, ('{"eventId":"' || $1::text || '","data":{"name":"secret"}}')::json,
		'{"to":"secret"}')`, id.String(), aggregate)
	e.becomes(id, is)
	if is == state.DeadBlocking || is == state.Dead || is == state.Discarded {
		e.letter(id, is == state.DeadBlocking)
	}
	return id
}

// letter writes a dead letter of an event, as a relay does.
func (e *env) letter(id outbox.ID, blocking bool) {
	e.t.Helper()
	e.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
			aggregate_type, aggregate_id, error_reason, payload_json, headers)
		SELECT seq, id, created_at, 3, $2::bool, namespace, event_type, aggregate_type, aggregate_id, 'max_attempts',
		payload_json, headers FROM {schema}.outbox_events WHERE id = $1`, id.String(), blocking)
}

// secrets is in how many rows something is left of an event.
func (e *env) secrets(id outbox.ID) string {
	e.t.Helper()
	return e.one(`SELECT count(*)::text FROM (
		SELECT payload_json::text || coalesce(headers::text, '') AS content FROM {schema}.outbox_events WHERE id = $1
		UNION ALL
		SELECT payload_json::text || coalesce(headers::text, '') FROM {schema}.outbox_dlq WHERE event_id = $1) r
		WHERE content LIKE '%secret%'`, id.String())
}

// TestErase: finished events alone, with their dead letters, once, and with a row of the log; the rest of the rows
// stays, and hashes say what was there.
func TestErase(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for _, is := range state.All() {
			id := e.withSecret("of "+is.String(), is)
			const facts = `SELECT (e.seq, e.id, e.created_at, e.published_at, e.attempt_count, e.lane, e.state, e.namespace,
				e.event_type, e.aggregate_type, e.aggregate_id, e.last_error)::text FROM {schema}.outbox_events e WHERE id = $1`
			before, secrets := e.one(facts, id.String()), e.secrets(id)
			a := action()
			if is < state.DeadBlocking { // ready, retrying, parked, waiting
				e.wantErased(a, "not applicable "+is.String(), id)
				if got := e.secrets(id) + e.actions(id); got != secrets {
					t.Errorf("%s: %s, want %s", is, got, secrets)
				}
				continue
			}
			e.wantErased(a, "done "+is.String(), id)
			e.wantErased(a, "done before "+is.String(), id)
			e.wantErased(action(), "not applicable "+is.String(), id)
			if got := e.secrets(id); got != "0" || secrets == "0" {
				t.Errorf("%s: a secret is left in %s of %s rows", is, got, secrets)
			}
			if got := e.one(facts, id.String()); got != before {
				t.Errorf("%s: the facts are %s, were %s", is, got, before)
			}
			if got := e.actions(id); got != "erase by ann: the topic is back" {
				t.Errorf("%s: the log has %s", is, got)
			}
			e.wantTombstones(id, a)
		}
		e.wantErased(action(), "not found", outbox.NewID())
		e.wantErased(action(), "")
	})
}

// wantTombstones looks at what stands in the place of payload and headers.
func (e *env) wantTombstones(id outbox.ID, a operator.Action) {
	e.t.Helper()
	hash := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	want := map[string]string{
		"action": a.ID.String(), "headersSha256": hash(`{"to":"secret"}`),
		"payloadSha256": hash(`{"eventId":"` + id.String() + `","data":{"name":"secret"}}`),
	}
	stones := e.one(`SELECT json_agg(payload_json)::text FROM (
		SELECT payload_json, headers FROM {schema}.outbox_events WHERE id = $1 AND headers IS NULL
		UNION ALL SELECT payload_json, headers FROM {schema}.outbox_dlq WHERE event_id = $1 AND headers IS NULL) r`,
		id.String())
	var read []struct{ Erased map[string]string }
	if err := json.Unmarshal([]byte(stones), &read); err != nil || len(read) == 0 {
		e.t.Fatalf("%s: %v", stones, err)
	}
	for _, stone := range read {
		at := stone.Erased["at"]
		delete(stone.Erased, "at")
		if !maps.Equal(stone.Erased, want) || !strings.HasSuffix(at, "Z") {
			e.t.Errorf("the tombstone is %v at %s, want %v", stone.Erased, at, want)
		}
	}
}

// TestErasedIsNeverSent: nothing opens an erased event again. What it blocks can be let go, and it can be closed.
func TestErasedIsNeverSent(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		published, dead := e.withSecret("1", state.Published), e.withSecret("2", state.Dead)
		blocking, waiting := e.withSecret("3", state.DeadBlocking), e.withSecret("3", state.Waiting)
		e.wantErased(action(), "done published, done dead, done dead and blocking", published, dead, blocking)
		e.wantRedelivered(action(), operator.Redelivery{}, "not applicable published", published)
		for _, id := range []outbox.ID{dead, blocking} {
			if got := e.do(e.operator.Redrive, action(), id); got.Outcome != operator.NotApplicable {
				t.Errorf("redrive: %+v", got)
			}
		}
		if got := e.one("SELECT count(*)::text FROM {schema}.outbox_requests"); got != "0" {
			t.Errorf("%s copies were asked for", got)
		}
		if got := e.do(e.operator.Skip, action(), blocking); got.Outcome != operator.Done {
			t.Errorf("skip: %+v", got)
		}
		if got := e.row(waiting); !strings.HasPrefix(got, "1 ") {
			t.Errorf("what waited is %s", got)
		}
		if got := e.do(e.operator.Redrive, action(), blocking); got.Outcome != operator.NotApplicable {
			t.Errorf("redrive after the skip: %+v", got)
		}
		if got := e.do(e.operator.Discard, action(), dead); got.Outcome != operator.Done {
			t.Errorf("discard: %+v", got)
		}
	})
}

// TestACopyToSendKeepsAnEvent: while a request is open, and no longer.
func TestACopyToSendKeepsAnEvent(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id, redelivery := e.withSecret("1", state.Published), action()
		e.wantRedelivered(redelivery, operator.Redelivery{}, "done published", id)
		e.wantErased(action(), "not applicable published", id)
		e.wantPlanned(operator.Filter{IDs: []outbox.ID{id}}, "erased map[] kept map[a copy is to be sent:1]")
		e.wantCanceled(action(), redelivery.ID, "1 canceled, 0 left")
		e.wantErased(action(), "done published", id)
	})
}

func (e *env) wantPlanned(filter operator.Filter, want string) {
	e.t.Helper()
	plan, err := e.operator.PlanErasure(e.t.Context(), filter, operator.MaxEvents)
	if got := fmt.Sprintf("erased %v kept %v", plan.Erased, plan.Kept); err != nil || got != want {
		e.t.Errorf("planned: %s, %v\nwant %s", got, err, want)
	}
	sum := 0
	for _, count := range plan.Erased {
		sum += count
	}
	if len(plan.Events) != sum {
		e.t.Errorf("%d events, %d are counted", len(plan.Events), sum)
	}
}

// TestErasureTakesTurns: a copy that is asked for meanwhile is seen, and so is an erasure by whoever asks for one.
func TestErasureTakesTurns(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for name, turn := range map[string]struct{ first, second, want string }{
			"redeliver first": {
				"SELECT outcome FROM {schema}.outbox_redeliver('ann', '', ARRAY[$1::text::uuid])",
				"SELECT outcome FROM {schema}.outbox_erase('ann', 'why', ARRAY[$1::text::uuid])", "not applicable",
			},
			"erase first": {
				"SELECT outcome FROM {schema}.outbox_erase('ann', 'why', ARRAY[$1::text::uuid])",
				"SELECT outcome FROM {schema}.outbox_redeliver('ann', '', ARRAY[$1::text::uuid])", "not applicable",
			},
		} {
			id := e.withSecret(name, state.Published)
			tx, err := e.admin.Begin(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var outcome string
			if err := tx.QueryRow(t.Context(), e.sql(turn.first), id.String()).Scan(&outcome); err != nil || outcome != "done" {
				t.Fatalf("%s: %s, %v", name, outcome, err)
			}
			second := make(chan string, 1)
			go func() {
				var outcome string
				if err := e.role.QueryRow(t.Context(), e.sql(turn.second), id.String()).Scan(&outcome); err != nil {
					outcome = err.Error()
				}
				second <- outcome
			}()
			e.untilWaiting("1")
			if err := tx.Commit(t.Context()); err != nil {
				t.Fatal(err)
			}
			if got := <-second; got != turn.want {
				t.Errorf("%s: the second is told %s", name, got)
			}
		}
	})
}

// TestErasureOfWhatRetentionLeft: a dead letter outlives its event, and is erased without it.
func TestErasureOfWhatRetentionLeft(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.withSecret("1", state.Discarded)
		e.letter(id, false)
		e.exec("DELETE FROM {schema}.outbox_events WHERE id = $1", id.String())
		e.wantPlanned(operator.Filter{IDs: []outbox.ID{id}}, "erased map[deleted:1] kept map[]")
		e.wantErased(action(), "done", id)
		if got := e.secrets(id); got != "0" {
			t.Errorf("%s dead letters have it still", got)
		}
		letters, err := e.operator.DeadLetters(t.Context(), operator.DeadLetterFilter{Events: []outbox.ID{id}})
		if err != nil || len(letters.Letters) != 2 || !letters.Letters[0].Erased || !letters.Letters[1].Erased {
			t.Errorf("%+v, %v", letters, err)
		}
	})
}

// rewrite changes what no role may change.
func (e *env) rewrite(table, set string, id outbox.ID) {
	e.t.Helper()
	e.exec("ALTER TABLE {schema}." + table + " DISABLE TRIGGER USER")
	e.exec("UPDATE {schema}."+table+" SET "+set, id.String())
	e.exec("ALTER TABLE {schema}." + table + " ENABLE TRIGGER USER")
}

// TestErasureFindsWhatRetentionLeft: by all that a dead letter says of its event. A field that it does not have is
// told, and letters are not looked at.
func TestErasureFindsWhatRetentionLeft(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		there, gone := e.withSecret("4711", state.Dead), e.withSecret("4711", state.Discarded)
		e.rewrite("outbox_dlq", "tenant_id = 'acme', namespace = 'shop' WHERE event_id = $1", gone)
		e.withSecret("4712", state.Discarded)
		e.exec("DELETE FROM {schema}.outbox_events WHERE id = $1", gone.String())
		for text, want := range map[string]string{
			"aggregate:order/4711":                           "erased map[dead:1 deleted:1] kept map[]",
			"aggregate:order/4711 type:placed,x created:<1h": "erased map[dead:1 deleted:1] kept map[]",
			"aggregate:order/4711 created:>1h":               "erased map[] kept map[]",
			"tenant:acme":                                    "erased map[deleted:1] kept map[]",
			"tenant:other":                                   "erased map[] kept map[]",
			"namespace:shop":                                 "erased map[deleted:1] kept map[]",
			"type:other":                                     "erased map[] kept map[]",
			"tenant:acme id:" + gone.String():                "erased map[deleted:1] kept map[]",
			"tenant:acme id:" + there.String():               "erased map[] kept map[]",
			"aggregate:order/4711 state:dead,discarded":      "erased map[dead:1] kept map[]",
		} {
			filter, err := operator.ParseFilter(text)
			if err != nil {
				t.Fatal(err)
			}
			e.wantPlanned(filter, want)
		}
		asked := operator.Filter{AggregateType: "order", States: []string{"dead"}, Attempts: operator.AttemptRange{Set: true}}
		plan, err := e.operator.PlanErasure(t.Context(), asked, 10)
		if got := strings.Join(plan.Unasked, " "); got != "state attempts" || err != nil {
			t.Errorf("not asked of letters: %s, %v", got, err)
		}
		admin := operator.New(e.admin, e.schema)
		filter := operator.Filter{Data: []operator.DataValue{{Path: []string{"name"}, Value: "secret"}}, Tenant: "acme"}
		if plan, err := admin.PlanErasure(t.Context(), filter, 10); err != nil || plan.Erased["deleted"] != 1 {
			t.Errorf("by its data: %+v, %v", plan, err)
		}
		if _, err := e.operator.PlanErasure(t.Context(), filter, 10); !errors.Is(err, operator.ErrPayloads) {
			t.Errorf("by its data, without the right: %v", err)
		}
		var tooMany *operator.TooManyError
		if _, err := e.operator.PlanErasure(t.Context(), operator.Filter{Types: []string{"placed"}}, 2); !errors.As(err,
			&tooMany) {
			t.Errorf("three of at most two: %v", err)
		}
	})
}

// TestAnIDThatWasUsedAgainIsErasedAgain: in the table and among the letters, and what was erased keeps its hash.
func TestAnIDThatWasUsedAgainIsErasedAgain(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		row, letter := e.withSecret("1", state.Published), e.withSecret("2", state.Dead)
		first := action()
		e.wantErased(first, "done published, done dead", row, letter)
		const hashes = `SELECT string_agg(payload_json::text, ' ' ORDER BY seq) FROM {schema}.outbox_events WHERE id = $1
			AND seq = (SELECT min(seq) FROM {schema}.outbox_events WHERE id = $1)`
		was := e.one(hashes, row.String())
		e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, headers,
			state)
			VALUES ($1::text::uuid, 'placed', 'order', '1', ('{"eventId":"' || $1::text || '","data":{"name":"secret"}}')::json,
			'{"to":"secret"}', 6)`, row.String())
		e.exec(`INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, attempts, blocking, namespace, event_type,
				aggregate_type, aggregate_id, error_reason, payload_json)
			SELECT seq, id, created_at, 3, false, namespace, event_type, aggregate_type, aggregate_id, 'max_attempts',
				'{"name":"secret"}' FROM {schema}.outbox_events WHERE id = $1`, letter.String())
		ids := operator.Filter{IDs: []outbox.ID{row, letter}}
		e.wantPlanned(ids, "erased map[dead:1 published:1] kept map[]")
		e.wantErased(first, "done before published, done before dead", row, letter)
		second := action()
		e.wantErased(second, "done published, done dead", row, letter)
		if left := e.secrets(row) + " " + e.secrets(letter); left != "0 0" {
			t.Errorf("rows with secrets are left: %s", left)
		}
		if got := e.one(hashes, row.String()); got != was {
			t.Errorf("the first tombstone is %s, was %s", got, was)
		}
		e.wantErased(second, "done before published, done before dead", row, letter)
		e.wantErased(action(), "not applicable published, not applicable dead", row, letter)
		e.wantPlanned(ids, "erased map[] kept map[erased before:2]")
	})
}

// TestErasureFindsWhatWasPublishedLate: what waited for days meets the day of its publishing like any other.
func TestErasureFindsWhatWasPublishedLate(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.withSecret("1", state.Published)
		e.withSecret("2", state.Published)
		e.rewrite("outbox_events", `created_at = now() - interval '3 days',
			id = overlay(id::text PLACING '01890000-0000' FROM 1 FOR 13)::uuid WHERE id = $1`, id)
		e.exec("UPDATE {schema}.outbox_events SET published_at = now() - interval '1 hour'")
		filter, err := operator.ParseFilter("published:<2h")
		if err != nil {
			t.Fatal(err)
		}
		e.wantPlanned(filter, "erased map[published:2] kept map[]")
	})
}

// TestAnErasureIsPlanned: all that a filter means is counted by what would come of it, and shown as erased afterwards.
func TestAnErasureIsPlanned(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		one, dead := e.withSecret("7", state.Published), e.withSecret("7", state.Dead)
		ready, other := e.withSecret("7", state.Ready), e.withSecret("8", state.Published)
		filter := operator.Filter{AggregateType: "order", AggregateID: "7"}
		e.wantPlanned(filter, "erased map[dead:1 published:1] kept map[ready:1]")
		e.wantPlanned(operator.Filter{IDs: []outbox.ID{one, one, ready, outbox.NewID()}},
			"erased map[published:1] kept map[not found:1 ready:1]")
		var tooMany *operator.TooManyError
		if _, err := e.operator.PlanErasure(t.Context(), filter, 1); !errors.As(err, &tooMany) || tooMany.Most != 1 {
			t.Errorf("two of at most one: %v", err)
		}
		if plan, err := e.operator.PlanErasure(t.Context(), filter, 2); err != nil || len(plan.Events) != 2 {
			t.Errorf("two of at most two, and one that is kept: %+v, %v", plan, err)
		}
		e.wantErased(action(), "done published, done dead", one, dead)
		e.wantPlanned(filter, "erased map[] kept map[erased before:2 ready:1]")
		page, err := e.operator.Events(t.Context(), operator.Filter{}, operator.Page{})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range page.Events {
			if want := event.ID == one || event.ID == dead; event.Erased != want {
				t.Errorf("%s %s: erased is %v", event.State, event.ID, event.Erased)
			}
		}
		aggregate, err := e.operator.Aggregate(t.Context(), "order", "7", 10)
		if err != nil || len(aggregate.Events) != 3 || !aggregate.Events[0].Erased || aggregate.Events[2].Erased {
			t.Errorf("%+v, %v", aggregate, err)
		}
		explained, err := e.operator.Explain(t.Context(), dead)
		if err != nil || !strings.Contains(explained.Causes[0].Says, "were erased by ann") ||
			strings.Contains(explained.Causes[0].Do, "redrive") {
			t.Errorf("%+v, %v", explained, err)
		}
		if got := e.secrets(other); got != "1" {
			t.Error("another event was erased")
		}
	})
}

// TestErasuresThatAreNone: without a reason, of too many, in another isolation, under the id of another decision.
func TestErasuresThatAreNone(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		id := e.withSecret("1", state.Published)
		without := action()
		without.Reason = " "
		if _, err := e.operator.Erase(t.Context(), without, id); err == nil || !strings.Contains(err.Error(), "a reason") {
			t.Errorf("without a reason: %v", err)
		}
		if _, err := e.operator.Erase(t.Context(), action(), make([]outbox.ID, operator.MaxEvents+1)...); err == nil ||
			!strings.Contains(err.Error(), "10001 events") {
			t.Errorf("too many: %v", err)
		}
		for want, statement := range map[string]string{
			"an erasure must have one": "SELECT {schema}.outbox_erase('ann', '', ARRAY[$1::text::uuid])",
			"the limit of one call": "SELECT {schema}.outbox_erase('ann', 'why', " +
				"array_fill($1::text::uuid, ARRAY[10001]))",
			"needs READ COMMITTED": "BEGIN ISOLATION LEVEL REPEATABLE READ; SELECT {schema}.outbox_erase('ann', 'why', " +
				"ARRAY['" + id.String() + "'::uuid]); COMMIT",
		} {
			var args []any
			if strings.Contains(statement, "$1") {
				args = []any{id.String()}
			}
			if _, err := e.admin.Exec(t.Context(), e.sql(statement), args...); err == nil ||
				!strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		}
		redelivery := action()
		e.wantRedelivered(redelivery, operator.Redelivery{}, "done published", id)
		if _, err := e.operator.Erase(t.Context(), redelivery, id); err == nil ||
			!strings.Contains(err.Error(), "used before, for a redeliver") {
			t.Errorf("the id of another decision: %v", err)
		}
		if got := e.secrets(id); got != "1" {
			t.Errorf("it is erased")
		}
	})
}
