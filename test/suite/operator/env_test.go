package operator

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"log/slog"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
	"github.com/posthaste-dev/posthaste/relay"
	"github.com/posthaste-dev/posthaste/relay/operator"
	"github.com/posthaste-dev/posthaste/test/kit/background"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/pgtest"
	"github.com/posthaste-dev/posthaste/test/kit/process"
	"github.com/posthaste-dev/posthaste/test/kit/states"
)

type order struct {
	N int `json:"n"`
}

var (
	placed = outbox.Define[order](outbox.Contract{
		Type: "order_placed", Aggregate: "order", Topic: "orders", OnDead: outbox.OnDeadBlock,
	})
	shipped = outbox.Define[order](outbox.Contract{Type: "order_shipped", Aggregate: "order", Topic: "orders"})
	billed  = outbox.Define[order](outbox.Contract{Type: "order_billed", Aggregate: "order", Topic: "bills"})
	unknown = outbox.Define[order](outbox.Contract{Type: "order_archived", Aggregate: "order", Topic: "archive"})
)

// An env is an outbox, a viewer of it, and what a broker answers.
type env struct {
	*pgtest.DB
	viewer *operator.Operator
	role   string
	// environment is what outboxctl has beside the database.
	environment []string

	mutex  sync.Mutex
	answer func(message *publish.Message) error
}

func onEach(t *testing.T, test func(t *testing.T, e *env)) {
	t.Helper()
	pgtest.OnEach(t, func(t *testing.T, db *pgtest.DB) { test(t, newEnv(t, db)) })
}

func newEnv(t *testing.T, db *pgtest.DB) *env {
	t.Helper()
	e := &env{DB: db, role: pgtest.NewRole(t, db.Server, "viewer")}
	db.Exec(t, "SELECT {schema}.outbox_grant('viewer', $1)", e.role)
	e.viewer = operator.New(db.Open(t, pgtest.As(t, db.URL, e.role), "search_path", ""), db.Schema)
	return e
}

// answers has the broker answer so.
func (e *env) answers(with func(message *publish.Message) error) {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	e.answer = with
}

func (e *env) publish(_ context.Context, message *publish.Message) error {
	e.mutex.Lock()
	defer e.mutex.Unlock()
	if e.answer == nil {
		return nil
	}
	return e.answer(message)
}

// start runs a relay that knows these contracts until the test ends, or until stop. Retries come late, so that what
// waits for one is seen waiting.
func (e *env) start(t *testing.T, name string, contracts ...outbox.AnyContract) (stop func()) {
	t.Helper()
	registry, err := outbox.NewRegistry(contracts...)
	if err != nil {
		t.Fatal(err)
	}
	made, err := relay.New(relay.Config{
		Database: e.URL, Schema: e.Schema, Registry: registry, Publisher: publish.PublisherFunc(e.publish), Name: name,
		Logger: slog.New(slog.DiscardHandler),
		Settings: relay.Settings{
			Lease: time.Minute, Poll: 50 * time.Millisecond, BaseDelay: time.Hour, MaxDelay: 2 * time.Hour, MaxAttempts: 3,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return background.Run(t, "relay "+name, made.Run)
}

// fleet starts the usual relay, and waits until it has all lanes.
func (e *env) fleet(t *testing.T) {
	t.Helper()
	e.start(t, "main", placed, shipped, billed)
	e.awaitLanes(t, "main", 64)
}

func (e *env) awaitLanes(t *testing.T, name string, lanes int) {
	t.Helper()
	eventually.True(t, name+" has its lanes", func() bool {
		return e.Count(t, "SELECT count(*) FROM {schema}.outbox_lane_status WHERE owner_name = $1", name) == lanes
	})
}

// emit writes events in one transaction.
func (e *env) emit(t *testing.T, events ...outbox.Event) []outbox.ID {
	t.Helper()
	ids := make([]outbox.ID, len(events))
	for i := range events {
		ids[i] = outbox.NewID()
		events[i].ID = ids[i]
	}
	e.write(t, events...)
	return ids
}

// write writes events that have their ids in one transaction.
func (e *env) write(t *testing.T, events ...outbox.Event) {
	t.Helper()
	if err := outbox.InTx(t.Context(), e.Pool, func(ctx context.Context, tx pgx.Tx) error {
		_, err := outbox.Emit(ctx, outbox.InSchema(tx, e.Schema), events...)
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// old writes an event past the library, as if so long ago, and returns its id.
func (e *env) old(t *testing.T, age time.Duration, eventType, aggregate string) outbox.ID {
	t.Helper()
	id := outbox.NewID()
	milliseconds := binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(-age).UnixMilli()))
	copy(id[:6], milliseconds[2:])
	e.Exec(t, `INSERT INTO {schema}.outbox_events (id, event_type, aggregate_type, aggregate_id, created_at, payload_json)
		VALUES ($1::text::uuid, $2, 'order', $3, clock_timestamp() - $4::text::interval,
		json_build_object('version', 1, 'eventId', $1::text, 'occurredAt', now(), 'data', json_build_object('n', 1)))`,
		id.String(), eventType, aggregate, age.String())
	return id
}

func (e *env) awaitState(t *testing.T, id outbox.ID, state int) {
	t.Helper()
	eventually.True(t, "its state", func() bool {
		return e.Count(t, "SELECT "+states.Of+" FROM {schema}.outbox_events e WHERE id = $1::text::uuid",
			id.String()) == state
	})
}

func (e *env) move(t *testing.T, id outbox.ID, state int) {
	t.Helper()
	e.Exec(t, states.Move, id.String(), state)
}

// owner decides as the owner of the tables.
func (e *env) owner() *operator.Operator { return operator.New(e.Pool, e.Schema) }

func (e *env) pause(t *testing.T, scope operator.Scope) {
	t.Helper()
	action := operator.Action{ID: outbox.NewID(), Actor: "ada", Reason: "the consumers are broken"}
	if outcome, err := e.owner().Pause(t.Context(), action, scope); err != nil || outcome != operator.Done {
		t.Fatalf("%s: %v, %v", scope, outcome, err)
	}
}

// called is what came of a command.
type called struct {
	code           int
	stdout, stderr string
	err            error // it could not be run
}

// call runs outboxctl as a role of this outbox.
func (e *env) call(t *testing.T, role string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	got := eventually.Receive(t, "the command has ended", e.begin(t, role, args...))
	if got.err != nil {
		t.Fatal(got.err)
	}
	return got.code, got.stdout, got.stderr
}

// begin begins to run it, for no longer than anything takes that does not hang.
func (e *env) begin(t *testing.T, role string, args ...string) <-chan called {
	t.Helper()
	binary, err := process.Built(t.Context(), "cmd/outboxctl")
	if err != nil {
		t.Fatal(err)
	}
	address := e.URL
	if role != "" {
		address = pgtest.As(t, e.URL, role)
	}
	ctx, cancel := context.WithTimeout(t.Context(), eventually.Patience)
	command := exec.CommandContext(ctx, binary, append(args, "--schema", e.Schema)...)
	command.Env = append([]string{"POSTHASTE_DATABASE_URL=" + address}, e.environment...)
	var out, said bytes.Buffer
	command.Stdout, command.Stderr = &out, &said
	ended := make(chan called, 1)
	go func() {
		defer cancel()
		err := command.Run()
		if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && ctx.Err() == nil {
			err = nil
		}
		ended <- called{command.ProcessState.ExitCode(), out.String(), said.String(), err}
	}()
	return ended
}
