package operator

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/internal/state"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/leases"
)

// A situation is an event that waits, or does not, and what must be said about it: the codes of all causes in their
// order, and pieces of the sentences.
type situation struct {
	name    string
	prepare func(t *testing.T, e *env) outbox.ID
	codes   string
	says    []string
}

// situations are prepared with relays that run wherever one that runs can come into them.
var situations = []situation{
	{"behind a dead head", behindDead, "behind_dead", []string{
		"behind a dead event that blocks its aggregate: order_placed", "of order/1, dead for", `no such field`,
		"redrive", "skip",
	}},
	{"behind a retrying head", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		return e.emitRejected(t)[1]
	}, "behind_retrying", []string{
		"behind an event of its aggregate that failed and is tried again in", "after 1 attempt",
	}},
	{"in backoff", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		return e.emitRejected(t)[0]
	}, "backoff", []string{"It failed and is tried again in", "charged with 1 attempt", `"rejected: not now"`}},
	{"topic paused by its breaker", topicDown, "topic_failing", []string{
		"The topic orders failed for main and has been paused for", `paused by its quota`, "look at the broker",
	}},
	{"everything paused by an operator", pausedAs(operator.AllScope), "paused_all", []string{
		"ada paused everything", "the consumers are broken", "resume --all",
	}},
	{"topic paused by an operator", pausedAs(operator.TopicScope("orders")), "paused_topic", []string{
		"ada paused the topic orders", "topics resume orders",
	}},
	{"type paused by an operator", pausedAs(operator.TypeScope("order_shipped")), "paused_type", []string{
		"ada paused the type order_shipped", "resume --type order_shipped",
	}},
	{"behind one of a paused type", pausedAs(operator.TypeScope("order_placed")), "paused_type", []string{
		"ada paused the type order_placed", "this one waits behind that",
	}},
	{"type unknown to all", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.fleet(t)
		id := e.emit(t, unknown.New("1", order{}))[0]
		e.awaitState(t, id, int(state.Parked))
		return id
	}, "type_unknown", []string{"None of the 1 relay alive knows its type order_archived", "deploy a relay"}},
	{"behind one of an unknown type", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.fleet(t)
		ids := e.emit(t, unknown.New("1", order{}), shipped.New("1", order{}))
		e.awaitState(t, ids[1], int(state.Waiting))
		return ids[1]
	}, "type_unknown behind_parked", []string{
		"knows the type order_archived, of an event before it", "behind a parked event",
	}},
	{"known to a relay that does not hold the lane", knownByOthers, "known_by_others", []string{
		"first holds lane", "does not know its type order_archived; second does",
	}},
	{"lane unheld", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.join(t, "first", "orders")
		return e.emit(t, shipped.New("1", order{}))[0]
	}, "lane_unheld", []string{"Nobody holds its lane", "1 relay is alive"}},
	{"lane of a silent relay", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.hold(t, e.join(t, "gone", "orders"))
		e.Exec(t, leases.Expire, "gone")
		e.join(t, "second", "orders")
		return e.emit(t, shipped.New("1", order{}))[0]
	}, "lane_unheld", []string{"is silent, and its lease is over", "It is gone, last heard of"}},
	{"no relay at all", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		return e.emit(t, shipped.New("1", order{}))[0]
	}, "no_relay", []string{"No relay is alive", "start outbox-publisher"}},
	{"relay alive and stuck", stuck, "relay_stuck", []string{
		"main has held lane", "and is alive: its last beat was", "ready for up to 6", "the floor of the lane stands at 0",
	}},
	{"everything paused after a restore", restored, "restored no_relay", []string{
		"from another cluster", "publish nothing", "resume --restored", "One that waits for the resume does not",
	}},
	{"restored to a point in time", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		id := e.emit(t, shipped.New("1", order{}))[0]
		e.Exec(t, `INSERT INTO {schema}.outbox_identity (system_identifier, timeline, seen_at)
			SELECT system_identifier, 999, '2026-01-01' FROM pg_control_system()`)
		return id
	}, "restored no_relay", []string{
		"relays were last seen on 999 at 2026-01-01T00:00:00Z", "No relay shows as alive",
	}},
	{"already published", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.fleet(t)
		id := e.emit(t, shipped.New("1", order{}))[0]
		e.awaitState(t, id, int(state.Published))
		return id
	}, "published", []string{"It is published: the broker acknowledged it at", "after its transaction began"}},
	{"pruned", pruned, "pruned", []string{"It is not in the table", "it has deleted 1 event,", "pruned"}},
	{"never here", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.Exec(t, "UPDATE {schema}.outbox_retention SET cut_off = '2026-01-01'")
		return outbox.NewID()
	}, "not_found", []string{"It is not in the table", "retention has deleted only what is older than 2026-01-01"}},
	{"dead", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.fleet(t)
		e.answers(func(*publish.Message) error {
			return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New("no such field")}
		})
		id := e.emit(t, shipped.New("1", order{}))[0]
		e.awaitState(t, id, int(state.Dead))
		return id
	}, "dead", []string{
		"with the reason rejected, after 1 attempt", "later events of its aggregate went on", "redrive",
	}},
	{"dead and blocking", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		return e.emitDead(t)[0]
	}, "dead_blocking", []string{"later events of order/1 wait behind it", "skip"}},
	{"skipped", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		id := e.emitDead(t)[0]
		e.act(t, e.owner().Skip, id)
		return id
	}, "dead", []string{"ada skipped it", "the consumers know"}},
	{"discarded", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		id := e.emitDead(t)[0]
		e.act(t, e.owner().Discard, id)
		return id
	}, "discarded", []string{"ada discarded it", "the consumers know", "It is never published"}},
	{"two causes at once", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		id := behindDead(t, e)
		e.pause(t, operator.TopicScope("orders"))
		return id
	}, "paused_topic behind_dead", []string{"ada paused the topic orders", "behind a dead event that blocks"}},
	{"three causes at once", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.join(t, "first", "orders")
		e.pause(t, operator.TypeScope("order_shipped"))
		ids := e.emit(t, placed.New("1", order{}), shipped.New("1", order{}))
		e.move(t, ids[0], int(state.Retrying))
		return ids[1]
	}, "paused_type lane_unheld behind_retrying", []string{"tried again now"}},
	{"a backlog", backlog, "backlog", []string{"150 events of its lane are ready before it", "The relay works on them"}},
	{"in quarantine", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.hold(t, e.join(t, "first", "orders"))
		id := e.emit(t, shipped.New("1", order{}))[0]
		e.Exec(t, `INSERT INTO {schema}.outbox_markers (layout, lane, event_id, deaths)
			SELECT 1, lane, '01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e', 3 FROM {schema}.outbox_events`)
		return id
	}, "quarantine", []string{"sent one at a time", "with which 3 relays died"}},
	{"below the floor", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.hold(t, e.join(t, "first", "orders"))
		e.Exec(t, "UPDATE {schema}.outbox_lanes SET floor = 1000")
		return e.emit(t, shipped.New("1", order{}))[0]
	}, "below_floor", []string{"not above the floor 1000"}},
	{"parked, though its type is known", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.hold(t, e.join(t, "first", "orders"))
		id := e.emit(t, shipped.New("1", order{}))[0]
		e.move(t, id, int(state.Parked))
		return id
	}, "parked", []string{"It is parked, though the relay that holds its lane knows its type", "release"}},
	{"a retry that somebody has put off for good", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.hold(t, e.join(t, "first", "orders"))
		id := e.emit(t, shipped.New("1", order{}))[0]
		e.move(t, id, int(state.Retrying))
		e.Exec(t, "UPDATE {schema}.outbox_held SET due = 'infinity', since = '-infinity'")
		return id
	}, "backoff", []string{"It failed and is tried again in"}},
	{"what it waited for is gone", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.hold(t, e.join(t, "first", "orders"))
		id := e.emit(t, shipped.New("1", order{}))[0]
		e.move(t, id, int(state.Waiting))
		return id
	}, "behind_nothing", []string{"that is gone"}},
	{"it goes out at once", func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.hold(t, e.join(t, "first", "orders"))
		return e.emit(t, shipped.New("1", order{}))[0]
	}, "due", []string{"Nothing keeps it: first holds lane", "within about a second"}},
}

// TestExplain: every situation, as a viewer of the outbox, by the library and by the command.
func TestExplain(t *testing.T) {
	t.Parallel()
	for _, s := range situations {
		t.Run(s.name, func(t *testing.T) {
			t.Parallel()
			onEach(t, func(t *testing.T, e *env) {
				e.wantExplained(t, s.prepare(t, e), s.codes, s.says...)
			})
		})
	}
	if len(situations) < 14 {
		t.Errorf("only %d situations", len(situations))
	}
}

// wantExplained asks as a viewer, both ways.
func (e *env) wantExplained(t *testing.T, id outbox.ID, codes string, says ...string) {
	t.Helper()
	found, err := e.viewer.Explain(t.Context(), id)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, cause := range found.Causes {
		got = append(got, string(cause.Code))
	}
	if strings.Join(got, " ") != codes {
		t.Errorf("the causes are %q, want %q: %+v", got, codes, found.Causes)
	}
	for _, piece := range says {
		if all := fmt.Sprintf("%+v", found.Causes); !strings.Contains(all, piece) {
			t.Errorf("nothing says %q:\n%s", piece, all)
		}
	}
	code, text, stderr := e.call(t, e.role, "events", "explain", id.String())
	want := 0
	if strings.HasPrefix(codes, "not_found") {
		want = 3
	}
	if code != want || stderr != "" {
		t.Errorf("exit code %d, want %d: %s", code, want, stderr)
	}
	for _, piece := range says {
		if !strings.Contains(strings.Join(strings.Fields(text), " "), piece) {
			t.Errorf("the command does not say %q:\n%s", piece, text)
		}
	}
}

// behindDead is an event that waits behind a dead one.
func behindDead(t *testing.T, e *env) outbox.ID {
	t.Helper()
	return e.emitDead(t)[1]
}

// emitDead emits two events of an aggregate, of which the first dies and blocks the second.
func (e *env) emitDead(t *testing.T) []outbox.ID {
	t.Helper()
	e.fleet(t)
	e.answers(func(*publish.Message) error {
		return &publish.TerminalError{Reason: publish.ReasonRejected, Err: errors.New("no such field")}
	})
	ids := e.emit(t, placed.New("1", order{}), shipped.New("1", order{}))
	e.awaitState(t, ids[0], int(state.DeadBlocking))
	e.awaitState(t, ids[1], int(state.Waiting))
	return ids
}

// emitRejected emits two events of an aggregate, of which the first is tried again in an hour.
func (e *env) emitRejected(t *testing.T) []outbox.ID {
	t.Helper()
	e.fleet(t)
	e.answers(func(*publish.Message) error { return &publish.RejectedError{Err: errors.New("not now")} })
	ids := e.emit(t, placed.New("1", order{}), shipped.New("1", order{}))
	e.awaitState(t, ids[0], int(state.Retrying))
	e.awaitState(t, ids[1], int(state.Waiting))
	return ids
}

func topicDown(t *testing.T, e *env) outbox.ID {
	t.Helper()
	e.fleet(t)
	e.answers(func(*publish.Message) error { return &publish.TopicError{Err: errors.New("paused by its quota")} })
	var events []outbox.Event
	for i := range 10 {
		events = append(events, shipped.New(fmt.Sprint(i), order{}))
	}
	ids := e.emit(t, events...)
	eventually.True(t, "the topic is paused", func() bool {
		return e.Count(t, "SELECT count(*) FROM {schema}.outbox_topics WHERE paused") == 1
	})
	return ids[9]
}

// pausedAs has a fleet start under a pause, and an event behind another one.
func pausedAs(scope operator.Scope) func(t *testing.T, e *env) outbox.ID {
	return func(t *testing.T, e *env) outbox.ID {
		t.Helper()
		e.pause(t, scope)
		e.fleet(t)
		id := e.emit(t, placed.New("1", order{}), shipped.New("1", order{}))[1]
		if scope.Kind == "type" { // the relay has met it, and written it down
			e.awaitState(t, id, int(state.Waiting))
		}
		return id
	}
}

// join adds a relay that is alive and does nothing, and knows the types of the usual fleet.
func (e *env) join(t *testing.T, name, topic string) (id string) {
	t.Helper()
	id = outbox.NewID().String()
	e.Exec(t, leases.Join, id, name, "1 hour")
	e.Exec(t, `INSERT INTO {schema}.outbox_known (relay, event_type, topic)
		SELECT $1::text::uuid, unnest(ARRAY['order_placed', 'order_shipped']), $2`, id, topic)
	return id
}

func (e *env) hold(t *testing.T, relay string) {
	t.Helper()
	e.Exec(t, leases.Hold, relay)
}

func (e *env) act(t *testing.T, verb func(context.Context, operator.Action, ...outbox.ID) ([]operator.Result, error),
	id outbox.ID,
) {
	t.Helper()
	action := operator.Action{ID: outbox.NewID(), Actor: "ada", Reason: "the consumers know"}
	if results, err := verb(t.Context(), action, id); err != nil || results[0].Outcome != operator.Done {
		t.Fatalf("%v, %v", results, err)
	}
}

func knownByOthers(t *testing.T, e *env) outbox.ID {
	t.Helper()
	e.hold(t, e.join(t, "first", "orders"))
	second := e.join(t, "second", "orders")
	e.Exec(t, `INSERT INTO {schema}.outbox_known (relay, event_type, topic)
		VALUES ($1::text::uuid, 'order_archived', 'archive')`, second)
	id := e.emit(t, unknown.New("1", order{}))[0]
	e.move(t, id, int(state.Parked))
	return id
}

// stuck is a relay whose settles the database refuses: it publishes again and again, beats, and nothing moves.
func stuck(t *testing.T, e *env) outbox.ID {
	t.Helper()
	e.fleet(t)
	e.Exec(t, `CREATE FUNCTION {schema}.refuse() RETURNS trigger LANGUAGE plpgsql AS
		$$ BEGIN RAISE 'the disk is full'; END $$`)
	e.Exec(t, `CREATE TRIGGER refuse BEFORE UPDATE ON {schema}.outbox_events FOR EACH ROW EXECUTE FUNCTION
		{schema}.refuse()`)
	t.Cleanup(func() { // so that the relay can stop
		if _, err := e.Pool.Exec(context.Background(), e.SQL("DROP TRIGGER refuse ON {schema}.outbox_events")); err != nil {
			t.Error(err)
		}
	})
	e.Exec(t, "UPDATE {schema}.outbox_lanes SET acquired_at = acquired_at - interval '2 hours'")
	published := make(chan struct{}, 1)
	e.answers(func(*publish.Message) error {
		select {
		case published <- struct{}{}:
		default:
		}
		return nil
	})
	id := e.old(t, time.Hour, "order_shipped", "1")
	eventually.Receive(t, "it is published, and cannot be settled", published)
	return id
}

func restored(t *testing.T, e *env) outbox.ID {
	t.Helper()
	id := e.emit(t, shipped.New("1", order{}))[0]
	e.Exec(t, "INSERT INTO {schema}.outbox_identity (system_identifier, timeline) VALUES (1, 1)")
	e.start(t, "main", placed, shipped, billed) // it pauses
	return id
}

func pruned(t *testing.T, e *env) outbox.ID {
	t.Helper()
	id := e.old(t, 24*time.Hour, "order_shipped", "1")
	e.move(t, id, int(state.Published))
	e.Exec(t, "DELETE FROM {schema}.outbox_events")
	e.Exec(t, `UPDATE {schema}.outbox_retention SET cut_off = now() - interval '1 hour', deleted = 1
		WHERE kind = 'published'`)
	return id
}

func backlog(t *testing.T, e *env) outbox.ID {
	t.Helper()
	e.hold(t, e.join(t, "first", "orders"))
	var events []outbox.Event
	for range 152 {
		events = append(events, shipped.New("1", order{}))
	}
	ids := e.emit(t, events...)
	e.move(t, ids[0], int(state.Published))
	return ids[151]
}

// TestExplainNamesTheWriter: an open transaction before the event, with its pid, and with its age for who may see it.
func TestExplainNamesTheWriter(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		e.pause(t, operator.AllScope)
		e.fleet(t)
		writer := e.Begin(t)
		pid := fmt.Sprintf("pid %d", writer.Conn().PgConn().PID())
		missing := outbox.NewID()
		event := shipped.New("1", order{})
		event.ID = missing
		if _, err := outbox.Emit(t.Context(), outbox.InSchema(writer, e.Schema), event); err != nil {
			t.Fatal(err)
		}
		id := e.emit(t, shipped.New("3", order{}))[0]
		e.wantExplained(t, id, "paused_all open_writer", pid, "is not committed", "not for this role to see",
			"GRANT pg_read_all_stats")
		e.wantExplained(t, missing, "not_found open_writer", pid, "what they wrote shows when they commit")
		e.Exec(t, "GRANT pg_read_all_stats TO "+pgx.Identifier{e.role}.Sanitize())
		e.wantExplained(t, id, "paused_all open_writer", pid, "idle in transaction), open for ")
		if err := writer.Commit(t.Context()); err != nil {
			t.Fatal(err)
		}
		e.wantExplained(t, id, "paused_all")
		e.wantExplained(t, missing, "paused_all")
	})
}

// TestAnOpenWriterKeepsNothing: an event behind one goes out, whether it has written something or only drawn a
// number. So explain must not say that it keeps anything.
func TestAnOpenWriterKeepsNothing(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, e *env) {
		e.fleet(t)
		for _, draw := range []string{
			"SELECT nextval('{schema}.outbox_events_seq_seq')",
			`INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, payload_json)
				SELECT u.id, 'order_shipped', 'order', '1', json_build_object('eventId', u.id)
				FROM (SELECT {schema}.outbox_uuid7() AS id) u`,
		} {
			writer := e.Begin(t)
			if _, err := writer.Exec(t.Context(), e.SQL(draw)); err != nil {
				t.Fatal(err)
			}
			id := e.emit(t, shipped.New("1", order{}))[0]
			e.awaitState(t, id, int(state.Published))
			e.wantExplained(t, id, "published")
			if err := writer.Rollback(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}
