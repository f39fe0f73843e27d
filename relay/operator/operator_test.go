package operator_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/operator"
)

// becomes says what each verb makes of an event in each state; what is not here is not applicable.
var becomes = map[string]map[state.State]string{
	"redrive": {state.DeadBlocking: "1 attempts=0 due", state.Dead: "1 attempts=0 due"},
	"skip":    {state.DeadBlocking: "5 attempts=3"},
	"release": {state.Parked: "1 attempts=3 due"},
	"discard": {state.DeadBlocking: "7 attempts=3", state.Dead: "7 attempts=3"},
}

func TestEveryVerbFromEveryState(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		cells := 0
		for name, do := range e.verbs() {
			for _, from := range state.All() {
				was := from.String()
				id := e.event(fmt.Sprint(name, int(from)), "order_created", from)
				before := e.row(id)
				want, legal := becomes[name][from]
				result := e.do(do, action(), id)
				cells++
				if result.Was != was {
					t.Errorf("%s of %s: found as %q", name, was, result.Was)
				}
				log := name + " by ann: the topic is back"
				if from == state.DeadBlocking || from == state.Dead {
					log += ", of its dead letter"
				}
				if !legal {
					want, log = before, ""
				}
				if got := e.row(id); got != want || (result.Outcome == operator.Done) != legal ||
					!legal && result.Outcome != operator.NotApplicable {
					t.Errorf("%s of %s: %s, and the row is %q, want %q", name, was, result.Outcome, got, want)
				}
				if got := e.actions(id); got != log {
					t.Errorf("%s of %s: the log says %q, want %q", name, was, got, log)
				}
			}
			if result := e.do(do, action(), outbox.NewID()); result.Outcome != operator.NotFound || result.Was != "" {
				t.Errorf("%s of no event: %+v", name, result)
			}
		}
		if cells != 32 {
			t.Errorf("%d cells", cells)
		}
	})
}

// between is a database in which something happens before the second transaction begins.
type between struct {
	operator.DB
	begun int
	then  func()
}

func (b *between) BeginTx(ctx context.Context, options pgx.TxOptions) (pgx.Tx, error) {
	if b.begun++; b.begun == 2 {
		b.then()
	}
	return b.DB.BeginTx(ctx, options)
}

// TestTheAnswerIsWhatWasDone: an action looks for followers once more, in a transaction of its own, and decides nothing
// there. What an event has become meanwhile somebody decides who has seen it.
func TestTheAnswerIsWhatWasDone(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for name, do := range map[string]func(o *operator.Operator) verb{
			"skip":    func(o *operator.Operator) verb { return o.Skip },
			"discard": func(o *operator.Operator) verb { return o.Discard },
			"reissue": func(o *operator.Operator) verb {
				return func(ctx context.Context, a operator.Action, events ...outbox.ID) ([]operator.Result, error) {
					results, _, err := o.Reissue(ctx, a, events...)
					return results, err
				}
			},
			"edit": func(o *operator.Operator) verb {
				return func(ctx context.Context, a operator.Action, events ...outbox.ID) (results []operator.Result, err error) {
					result, made, err := o.Edit(ctx, a, events[0], json.RawMessage(`{"n":1}`))
					if made != (outbox.ID{}) {
						t.Errorf("edit: it made %s", made)
					}
					return append(results, result), err
				}
			},
		} {
			for with, dead := range map[string][]outbox.ID{
				"alone": nil, "beside a dead one": {e.event(name+" dead", "placed", state.DeadBlocking)},
			} {
				if name == "edit" && dead != nil {
					continue
				}
				id := e.event(name+with, "placed", state.Parked)
				want := "2 attempts=3" // where nothing was done there is no second look
				db := &between{DB: e.role, then: func() {
					want = "4 attempts=3"
					e.becomes(id, state.DeadBlocking)
					e.letter(id, true)
				}}
				results, err := do(operator.New(db, e.schema))(t.Context(), action(), append([]outbox.ID{id}, dead...)...)
				if err != nil {
					t.Fatal(err)
				}
				if results[0].Outcome != operator.NotApplicable || results[0].Was != "parked" {
					t.Errorf("%s %s: %+v", name, with, results[0])
				}
				if row, log := e.row(id), e.actions(id); row != want || log != "" {
					t.Errorf("%s %s: the answer says %s, and the event is %s: %s", name, with, results[0].Outcome, row, log)
				}
				for _, other := range results[1:] {
					if other.Outcome != operator.Done {
						t.Errorf("%s: the dead one is %s", name, other.Outcome)
					}
				}
			}
		}
	})
}

func TestAnActionIsDoneOnce(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		dead, waiting := e.event("a", "order_created", state.DeadBlocking), e.event("b", "order_created", state.Waiting)
		a := action()
		outcomes := func() string {
			t.Helper()
			results, err := e.operator.Redrive(t.Context(), a, dead, waiting, dead, outbox.ID{1})
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, result := range results {
				words = append(words, string(result.Outcome))
			}
			return strings.Join(words, ", ")
		}
		if got := outcomes(); got != "done, not applicable, done, not found" {
			t.Errorf("first: %s", got)
		}
		// Both died meanwhile. What was decided is over: who wants them tried again decides again.
		for _, id := range []outbox.ID{dead, waiting} {
			e.becomes(id, state.DeadBlocking)
		}
		e.exec("UPDATE {schema}.outbox_events SET attempt_count = 9")
		for range 2 {
			if got := outcomes(); got != "done before, not applicable, done before, not found" {
				t.Errorf("again: %s", got)
			}
		}
		for _, id := range []outbox.ID{dead, waiting} {
			if got := e.row(id); !strings.HasPrefix(got, "4 attempts=9") {
				t.Errorf("the row is %q", got)
			}
		}
		if got := e.one("SELECT count(*)::text FROM {schema}.outbox_actions"); got != "1" {
			t.Errorf("%s rows in the log", got)
		}
		if _, err := e.operator.Discard(t.Context(), a, dead); err == nil ||
			!strings.Contains(err.Error(), "used before, for a redrive") {
			t.Errorf("another verb under the same id: %v", err)
		}
		if got := e.row(dead); !strings.HasPrefix(got, "4 ") {
			t.Errorf("the row is %q", got)
		}
		// Retention takes the event and not the memory of the action.
		for _, id := range []outbox.ID{dead, waiting} {
			e.becomes(id, state.Discarded)
		}
		e.exec("DELETE FROM {schema}.outbox_events")
		if got := outcomes(); got != "done before, not found, done before, not found" {
			t.Errorf("after retention: %s", got)
		}
	})
}

// The same action, sent again while it runs, waits and gets the answer that it would get later.
func TestTheSameActionAtTheSameTime(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const callers = 4
		id, a := e.event("a", "order_created", state.DeadBlocking), action()
		gate, err := e.admin.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = gate.Rollback(context.Background()) }()
		if _, err := gate.Exec(t.Context(), e.sql("SELECT FROM {schema}.outbox_events FOR UPDATE")); err != nil {
			t.Fatal(err)
		}
		outcomes := make(chan operator.Outcome, callers)
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				results, err := e.operator.Redrive(t.Context(), a, id)
				if err != nil {
					t.Error(err)
					return
				}
				outcomes <- results[0].Outcome
			})
		}
		e.untilWaiting(fmt.Sprint(callers))
		if err := gate.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		close(outcomes)
		counts := map[operator.Outcome]int{}
		for outcome := range outcomes {
			counts[outcome]++
		}
		if counts[operator.Done] != 1 || counts[operator.DoneBefore] != callers-1 {
			t.Errorf("got %v", counts)
		}
	})
}

// Different actions for the same events, in different orders.
func TestActionsAtTheSameTime(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		const events, callers = 20, 8
		var ids []outbox.ID
		for i := range events {
			ids = append(ids, e.event(fmt.Sprint(i), "order_created", state.DeadBlocking))
		}
		var done atomic.Int64
		var group sync.WaitGroup
		for caller := range callers {
			order := slices.Clone(ids)
			if caller%2 == 1 {
				slices.Reverse(order)
			}
			group.Go(func() {
				results, err := e.operator.Redrive(t.Context(), action(), order...)
				if err != nil {
					t.Error(err)
				}
				for _, result := range results {
					if result.Outcome == operator.Done {
						done.Add(1)
					}
				}
			})
		}
		group.Wait()
		if done.Load() != events {
			t.Errorf("%d events were redriven %d times", events, done.Load())
		}
		if got := e.one("SELECT count(*)::text FROM {schema}.outbox_actions"); got != fmt.Sprint(events) {
			t.Errorf("%s rows in the log", got)
		}
	})
}

// Nothing changes without its row in the log.
func TestAnActionThatCannotBeLoggedChangesNothing(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		ids := map[string]outbox.ID{
			"redrive": e.event("a", "order_created", state.Dead), "skip": e.event("b", "order_created", state.DeadBlocking),
			"release": e.event("c", "order_created", state.Parked), "discard": e.event("d", "order_created", state.DeadBlocking),
		}
		behind := e.event("d", "order_created", state.Waiting)
		e.exec(`CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the disk is full'; END ` +
			`$$`)
		e.exec("CREATE TRIGGER mutant AFTER INSERT ON {schema}.outbox_actions EXECUTE FUNCTION {schema}.full()")
		for name, do := range e.verbs() {
			before := e.row(ids[name])
			if _, err := do(t.Context(), action(), ids[name]); err == nil || !strings.Contains(err.Error(), "the disk is full") {
				t.Errorf("%s: %v", name, err)
			}
			if got := e.row(ids[name]); got != before {
				t.Errorf("%s: the row is %q and was %q", name, got, before)
			}
		}
		if got := e.row(behind); !strings.HasPrefix(got, "3 ") {
			t.Errorf("the follower is %q", got)
		}
		e.exec("DROP TRIGGER mutant ON {schema}.outbox_actions")
		for name, do := range e.verbs() {
			if result := e.do(do, action(), ids[name]); result.Outcome != operator.Done {
				t.Errorf("%s with a log again: %+v", name, result)
			}
		}
	})
}

// Whoever waited behind a head that blocks no more must be found by a relay, which looks for what is due.
func TestFollowersOfAHeadThatWentAreDue(t *testing.T) {
	t.Parallel()
	const due, waiting = "1 attempts=3 due", "3 attempts=3"
	onEachServer(t, func(t *testing.T, e *env) {
		for name, want := range map[string]string{"skip": due, "discard": due, "redrive": waiting} {
			before := e.event(name, "order_created", state.Waiting)
			head := e.event(name, "order_created", state.DeadBlocking)
			first, second := e.event(name, "order_created", state.Waiting), e.event(name, "order_created", state.Waiting)
			otherType := e.event(name, "order_paid", state.Waiting)
			blockedHead := e.event(name, "order_viewed", state.DeadBlocking) // of another topic
			blocked := e.event(name, "order_viewed", state.Waiting)
			other := e.event("another "+name, "order_created", state.Waiting)
			if result := e.do(e.verbs()[name], action(), head); result.Outcome != operator.Done {
				t.Fatalf("%s: %+v", name, result)
			}
			for what, check := range map[string]struct {
				id   outbox.ID
				want string
			}{
				"the first behind it": {first, want}, "the first of another type": {otherType, want},
				"the second behind it": {second, waiting}, "one before it": {before, waiting},
				"one behind another dead one": {blocked, waiting}, "another dead one": {blockedHead, "4 attempts=3"},
				"another aggregate's": {other, waiting},
			} {
				if got := e.row(check.id); got != check.want {
					t.Errorf("%s: %s is %q, want %q", name, what, got, check.want)
				}
			}
		}
	})
}

// A relay that puts an event behind a block sees the block, and the action that ends it at that moment does not see the
// event. Nobody would ever look at it again.
func TestAFollowerThatCameWhileTheBlockEndedIsDue(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		for name, do := range map[string]verb{"skip": e.operator.Skip, "discard": e.operator.Discard} {
			head := e.event(name, "order_created", state.DeadBlocking)
			busy, err := e.admin.Begin(t.Context()) // so that the action has begun, and does not end
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = busy.Rollback(context.Background()) })
			if _, err := busy.Exec(t.Context(), e.sql(`SELECT FROM {schema}.outbox_held h JOIN {schema}.outbox_events e
				ON h.lane = e.lane AND h.seq = e.seq WHERE e.id = $1 FOR UPDATE OF h`), head.String()); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := do(t.Context(), action(), head)
				done <- err
			}()
			e.untilWaiting("1") // for the row
			follower := e.event(name, "order_created", state.Waiting)
			if err := busy.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
			select {
			case err := <-done:
				if err != nil {
					t.Error(err)
				}
			case <-time.After(patience):
				t.Fatalf("the %s does not end", name)
			}
			if got := e.row(follower); got != "1 attempts=3 due" {
				t.Errorf("after the %s the follower is %s", name, got)
			}
		}
	})
}

// A head that does not block has nobody behind it.
func TestNobodyIsPromotedBehindAHeadThatDoesNotBlock(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		dead, follower := e.event("a", "order_created", state.Dead), e.event("a", "order_created", state.Waiting)
		e.do(e.operator.Discard, action(), dead)
		if got := e.row(follower); got != "3 attempts=3" {
			t.Errorf("the follower is %q", got)
		}
	})
}

func TestActionsAreCheckedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	op := operator.New(nil, "") // it would panic if it were asked
	many := make([]outbox.ID, operator.MaxEvents+1)
	for want, call := range map[string]func() error{
		"no id": func() error { _, err := op.Skip(t.Context(), operator.Action{Actor: "ann"}, many[0]); return err },
		"no actor": func() error {
			_, err := op.Skip(t.Context(), operator.Action{ID: outbox.NewID()}, many[0])
			return err
		},
		"the limit of one action": func() error { _, err := op.Skip(t.Context(), action(), many...); return err },
		"a reason is required": func() error {
			_, err := op.Discard(t.Context(), operator.Action{ID: outbox.NewID(), Actor: "ann"}, many[0])
			return err
		},
		"the actor has 257": func() error {
			_, err := op.Skip(t.Context(), operator.Action{ID: outbox.NewID(), Actor: strings.Repeat("é", 257)})
			return err
		},
		"the reason has 2049": func() error {
			_, err := op.Skip(t.Context(), operator.Action{ID: outbox.NewID(), Actor: "a", Reason: strings.Repeat("é", 2049)})
			return err
		},
		"the reason holds a control": func() error {
			_, err := op.Skip(t.Context(), operator.Action{ID: outbox.NewID(), Actor: "a", Reason: "a\x00b"})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if results, err := op.Skip(t.Context(), action()); err != nil || results != nil {
		t.Errorf("no events: %v, %v", results, err)
	}
}

// The largest action, with followers behind each head, and the doorbell behind it.
func TestTheLargestAction(t *testing.T) {
	t.Parallel()
	onEachServer(t, func(t *testing.T, e *env) {
		ids := make([]outbox.ID, operator.MaxEvents)
		for _, is := range []state.State{state.DeadBlocking, state.Waiting, state.Waiting} { // heads, and two behind each
			texts := make([]string, len(ids))
			for i := range texts {
				id := outbox.NewID()
				texts[i] = id.String()
				if is == state.DeadBlocking {
					ids[i] = id
				}
			}
			e.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json, state)
				SELECT i.id::uuid, 'order_created', 'order', i.place::text, json_build_object('eventId', i.id), 1
				FROM unnest($1::text[]) WITH ORDINALITY AS i (id, place)`, texts)
			e.exec(`INSERT INTO {schema}.outbox_held (lane, seq, kind, namespace, event_type, aggregate_type, aggregate_id)
				SELECT lane, seq, $1::int, namespace, event_type, aggregate_type, aggregate_id FROM {schema}.outbox_events
				ON CONFLICT DO NOTHING`, int16(is))
		}
		listener, err := e.admin.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Release()
		if _, err := listener.Exec(t.Context(), "LISTEN posthaste"); err != nil {
			t.Fatal(err)
		}
		a := action()
		results, err := e.operator.Skip(t.Context(), a, ids...)
		if err != nil {
			t.Fatal(err)
		}
		for i, result := range results {
			if result.Event != ids[i] || result.Outcome != operator.Done {
				t.Fatalf("event %d: %+v", i, result)
			}
		}
		if got := e.one("SELECT count(*)::text FROM {schema}.outbox_events WHERE state = 5"); got != fmt.Sprint(len(ids)) {
			t.Errorf("%s events are skipped", got)
		}
		if got := e.one(`SELECT count(*)::text FROM {schema}.outbox_held
			WHERE kind = 1 AND due <= clock_timestamp()`); got != fmt.Sprint(len(ids)) {
			t.Errorf("%s followers are due", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for {
			notification, err := listener.Conn().WaitForNotification(ctx)
			if err != nil {
				t.Fatalf("no relay was woken: %v", err)
			}
			if notification.Payload == e.schema {
				break
			}
		}
	})
}
