package relay_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay"
)

// becomes says what each verb makes of an event in each state; what is not here is refused.
var becomes = map[string]map[int]string{
	"redrive": {4: "1 attempts=0 due", 5: "1 attempts=0 due"},
	"skip":    {4: "5 attempts=3"},
	"release": {2: "1 attempts=3 due"},
	"discard": {4: "7 attempts=3", 5: "7 attempts=3"},
}

var states = []string{"ready", "retrying", "parked", "waiting", "dead and blocking", "dead", "published", "discarded"}

func TestEveryVerbFromEveryState(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		cells := 0
		for name, do := range d.verbs() {
			for state, was := range states {
				id := d.event(fmt.Sprint(name, state), "order_created", state)
				before := d.row(id)
				want, legal := becomes[name][state]
				result := d.do(do, action(), id)
				cells++
				if result.Was != was {
					t.Errorf("%s of %s: found as %q", name, was, result.Was)
				}
				log := name + " by ann: the topic is back"
				if state == 4 || state == 5 {
					log += ", of its dead letter"
				}
				if !legal {
					want, log = before, ""
				}
				if got := d.row(id); got != want || (result.Outcome == relay.ActionDone) != legal || !legal && result.Outcome != relay.ActionRefused {
					t.Errorf("%s of %s: %s, and the row is %q, want %q", name, was, result.Outcome, got, want)
				}
				if got := d.actions(id); got != log {
					t.Errorf("%s of %s: the log says %q, want %q", name, was, got, log)
				}
			}
			if result := d.do(do, action(), outbox.NewID()); result.Outcome != relay.ActionNotFound || result.Was != "" {
				t.Errorf("%s of no event: %+v", name, result)
			}
		}
		if cells != 32 {
			t.Errorf("%d cells", cells)
		}
	})
}

func TestAnActionIsDoneOnce(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		dead, waiting := d.event("a", "order_created", 4), d.event("b", "order_created", 3)
		a := action()
		outcomes := func() string {
			t.Helper()
			results, err := d.operator.Redrive(t.Context(), a, dead, waiting, dead, outbox.ID{1})
			if err != nil {
				t.Fatal(err)
			}
			var words []string
			for _, result := range results {
				words = append(words, string(result.Outcome))
			}
			return strings.Join(words, ", ")
		}
		if got := outcomes(); got != "done, refused, done, not found" {
			t.Errorf("first: %s", got)
		}
		// Both died meanwhile. What was decided is over: who wants them tried again decides again.
		d.exec("UPDATE {schema}.outbox_events SET state = 4, attempt_count = 9")
		for range 2 {
			if got := outcomes(); got != "done before, refused, done before, not found" {
				t.Errorf("again: %s", got)
			}
		}
		for _, id := range []outbox.ID{dead, waiting} {
			if got := d.row(id); !strings.HasPrefix(got, "4 attempts=9") {
				t.Errorf("the row is %q", got)
			}
		}
		if got := d.one("SELECT count(*)::text FROM {schema}.outbox_actions"); got != "1" {
			t.Errorf("%s rows in the log", got)
		}
		if _, err := d.operator.Discard(t.Context(), a, dead); err == nil || !strings.Contains(err.Error(), "used before, for a redrive") {
			t.Errorf("another verb under the same id: %v", err)
		}
		if got := d.row(dead); !strings.HasPrefix(got, "4 ") {
			t.Errorf("the row is %q", got)
		}
		// Retention takes the event and not the memory of the action.
		d.exec("UPDATE {schema}.outbox_events SET state = 7")
		d.exec("DELETE FROM {schema}.outbox_events")
		if got := outcomes(); got != "done before, not found, done before, not found" {
			t.Errorf("after retention: %s", got)
		}
	})
}

// The same action, sent again while it runs, waits and gets the answer that it would get later.
func TestTheSameActionAtTheSameTime(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		const callers = 4
		id, a := d.event("a", "order_created", 4), action()
		gate, err := d.admin.Begin(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = gate.Rollback(context.Background()) }()
		if _, err := gate.Exec(t.Context(), d.sql("SELECT FROM {schema}.outbox_events FOR UPDATE")); err != nil {
			t.Fatal(err)
		}
		outcomes := make(chan relay.ActionOutcome, callers)
		var group sync.WaitGroup
		for range callers {
			group.Go(func() {
				results, err := d.operator.Redrive(t.Context(), a, id)
				if err != nil {
					t.Error(err)
					return
				}
				outcomes <- results[0].Outcome
			})
		}
		d.untilWaiting(fmt.Sprint(callers))
		if err := gate.Rollback(t.Context()); err != nil {
			t.Fatal(err)
		}
		group.Wait()
		close(outcomes)
		counts := map[relay.ActionOutcome]int{}
		for outcome := range outcomes {
			counts[outcome]++
		}
		if counts[relay.ActionDone] != 1 || counts[relay.ActionDoneBefore] != callers-1 {
			t.Errorf("got %v", counts)
		}
	})
}

// Different actions for the same events, in different orders.
func TestActionsAtTheSameTime(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		const events, callers = 20, 8
		var ids []outbox.ID
		for i := range events {
			ids = append(ids, d.event(fmt.Sprint(i), "order_created", 4))
		}
		var done atomic.Int64
		var group sync.WaitGroup
		for caller := range callers {
			order := slices.Clone(ids)
			if caller%2 == 1 {
				slices.Reverse(order)
			}
			group.Go(func() {
				results, err := d.operator.Redrive(t.Context(), action(), order...)
				if err != nil {
					t.Error(err)
				}
				for _, result := range results {
					if result.Outcome == relay.ActionDone {
						done.Add(1)
					}
				}
			})
		}
		group.Wait()
		if done.Load() != events {
			t.Errorf("%d events were redriven %d times", events, done.Load())
		}
		if got := d.one("SELECT count(*)::text FROM {schema}.outbox_actions"); got != fmt.Sprint(events) {
			t.Errorf("%s rows in the log", got)
		}
	})
}

// Nothing changes without its row in the log.
func TestAnActionThatCannotBeLoggedChangesNothing(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		ids := map[string]outbox.ID{
			"redrive": d.event("a", "order_created", 5), "skip": d.event("b", "order_created", 4),
			"release": d.event("c", "order_created", 2), "discard": d.event("d", "order_created", 4),
		}
		behind := d.event("d", "order_created", 3)
		d.exec(`CREATE FUNCTION {schema}.full() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN RAISE 'the disk is full'; END $$`)
		d.exec("CREATE TRIGGER planted AFTER INSERT ON {schema}.outbox_actions EXECUTE FUNCTION {schema}.full()")
		for name, do := range d.verbs() {
			before := d.row(ids[name])
			if _, err := do(t.Context(), action(), ids[name]); err == nil || !strings.Contains(err.Error(), "the disk is full") {
				t.Errorf("%s: %v", name, err)
			}
			if got := d.row(ids[name]); got != before {
				t.Errorf("%s: the row is %q and was %q", name, got, before)
			}
		}
		if got := d.row(behind); !strings.HasPrefix(got, "3 ") {
			t.Errorf("the follower is %q", got)
		}
		d.exec("DROP TRIGGER planted ON {schema}.outbox_actions")
		for name, do := range d.verbs() {
			if result := d.do(do, action(), ids[name]); result.Outcome != relay.ActionDone {
				t.Errorf("%s with a log again: %+v", name, result)
			}
		}
	})
}

// Whoever waited behind a head that blocks no more must be found by a relay, which looks for what is due.
func TestFollowersOfAHeadThatWentAreDue(t *testing.T) {
	t.Parallel()
	const due, waiting = "1 attempts=3 due", "3 attempts=3"
	onEachDesk(t, func(t *testing.T, d *desk) {
		for name, want := range map[string]string{"skip": due, "discard": due, "redrive": waiting} {
			before := d.event(name, "order_created", 3)
			head := d.event(name, "order_created", 4)
			first, second := d.event(name, "order_created", 3), d.event(name, "order_created", 3)
			otherType := d.event(name, "order_paid", 3)
			blockedHead := d.event(name, "order_viewed", 4) // of another topic
			blocked := d.event(name, "order_viewed", 3)
			other := d.event("another "+name, "order_created", 3)
			if result := d.do(d.verbs()[name], action(), head); result.Outcome != relay.ActionDone {
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
				if got := d.row(check.id); got != check.want {
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
	onEachDesk(t, func(t *testing.T, d *desk) {
		for name, do := range map[string]verb{"skip": d.operator.Skip, "discard": d.operator.Discard} {
			head := d.event(name, "order_created", 4)
			busy, err := d.admin.Begin(t.Context()) // so that the action has begun, and does not end
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = busy.Rollback(context.Background()) })
			if _, err := busy.Exec(t.Context(), d.sql("SELECT FROM {schema}.outbox_events WHERE id = $1 FOR UPDATE"), head.String()); err != nil {
				t.Fatal(err)
			}
			done := make(chan error, 1)
			go func() {
				_, err := do(t.Context(), action(), head)
				done <- err
			}()
			d.untilWaiting("1") // for the row
			follower := d.event(name, "order_created", 3)
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
			if got := d.row(follower); got != "1 attempts=3 due" {
				t.Errorf("after the %s the follower is %s", name, got)
			}
		}
	})
}

// A head that does not block has nobody behind it.
func TestNobodyIsPromotedBehindAHeadThatDoesNotBlock(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		dead, follower := d.event("a", "order_created", 5), d.event("a", "order_created", 3)
		d.do(d.operator.Discard, action(), dead)
		if got := d.row(follower); got != "3 attempts=3" {
			t.Errorf("the follower is %q", got)
		}
	})
}

func TestActionsAreCheckedBeforeAnythingIsSent(t *testing.T) {
	t.Parallel()
	operator := relay.NewOperator(nil, "") // it would panic if it were asked
	many := make([]outbox.ID, relay.MaxActionEvents+1)
	for want, call := range map[string]func() error{
		"no id": func() error { _, err := operator.Skip(t.Context(), relay.Action{Actor: "ann"}, many[0]); return err },
		"no actor": func() error {
			_, err := operator.Skip(t.Context(), relay.Action{ID: outbox.NewID()}, many[0])
			return err
		},
		"the limit of one action": func() error { _, err := operator.Skip(t.Context(), action(), many...); return err },
		"a reason is required": func() error {
			_, err := operator.Discard(t.Context(), relay.Action{ID: outbox.NewID(), Actor: "ann"}, many[0])
			return err
		},
		"the actor has 257": func() error {
			_, err := operator.Skip(t.Context(), relay.Action{ID: outbox.NewID(), Actor: strings.Repeat("é", 257)})
			return err
		},
		"the reason has 2049": func() error {
			_, err := operator.Skip(t.Context(), relay.Action{ID: outbox.NewID(), Actor: "a", Reason: strings.Repeat("é", 2049)})
			return err
		},
		"the reason holds a control": func() error {
			_, err := operator.Skip(t.Context(), relay.Action{ID: outbox.NewID(), Actor: "a", Reason: "a\x00b"})
			return err
		},
	} {
		if err := call(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
	if results, err := operator.Skip(t.Context(), action()); err != nil || results != nil {
		t.Errorf("no events: %v, %v", results, err)
	}
}

// The largest action, with followers behind each head, and the doorbell behind it.
func TestTheLargestAction(t *testing.T) {
	t.Parallel()
	onEachDesk(t, func(t *testing.T, d *desk) {
		ids := make([]outbox.ID, relay.MaxActionEvents)
		for _, state := range []int{4, 3, 3} { // heads, and two behind each
			texts := make([]string, len(ids))
			for i := range texts {
				id := outbox.NewID()
				texts[i] = id.String()
				if state == 4 {
					ids[i] = id
				}
			}
			d.exec(`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
				SELECT i.id::uuid, 'order_created', 'order', i.place::text, json_build_object('eventId', i.id) FROM unnest($1::text[]) WITH ORDINALITY AS i (id, place)`, texts)
			d.exec("UPDATE {schema}.outbox_events SET state = $1 WHERE state = 0", state)
		}
		listener, err := d.admin.Acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Release()
		if _, err := listener.Exec(t.Context(), "LISTEN posthaste"); err != nil {
			t.Fatal(err)
		}
		a := action()
		results, err := d.operator.Skip(t.Context(), a, ids...)
		if err != nil {
			t.Fatal(err)
		}
		for i, result := range results {
			if result.Event != ids[i] || result.Outcome != relay.ActionDone {
				t.Fatalf("event %d: %+v", i, result)
			}
		}
		if got := d.one("SELECT count(*)::text FROM {schema}.outbox_events WHERE state = 5"); got != fmt.Sprint(len(ids)) {
			t.Errorf("%s events are skipped", got)
		}
		if got := d.one("SELECT count(*)::text FROM {schema}.outbox_events WHERE state = 1"); got != fmt.Sprint(len(ids)) {
			t.Errorf("%s followers are due", got)
		}
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		for {
			notification, err := listener.Conn().WaitForNotification(ctx)
			if err != nil {
				t.Fatalf("no relay was woken: %v", err)
			}
			if notification.Payload == d.schema {
				break
			}
		}
	})
}
