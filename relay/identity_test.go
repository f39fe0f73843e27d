package relay

import (
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/jackc/pgx/v5/stdlib"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
	"github.com/posthaste-dev/posthaste/schema"
)

// TestWhereTheOutboxLives: what a look at the database means.
func TestWhereTheOutboxLives(t *testing.T) {
	t.Parallel()
	const window = 10 * time.Minute
	now := time.Now()
	first, second, other := server{1, 1}, server{1, 2}, server{2, 1}
	for name, c := range map[string]struct {
		look      look
		reference time.Time // zero: now
		window    time.Duration
		want      verdict
	}{
		"the same": {
			look: look{here: first, recorded: first, seen: now.Add(-1000 * time.Hour)}, want: sameDatabase,
		},
		"nobody was here":         {look: look{here: first}, want: adopted},
		"a copy without an event": {look: look{here: other, recorded: first, seen: now, empty: true}, want: adopted},
		"promoted":                {look: look{here: second, recorded: first, seen: now.Add(-window)}, want: failedOver},
		"promoted, on a clock that is behind": {
			look: look{here: second, recorded: first, seen: now.Add(time.Hour)}, want: failedOver,
		},
		"restored to a point in time": {
			look: look{here: second, recorded: first, seen: now.Add(-window - 1)}, want: restored,
		},
		"a dump":                  {look: look{here: other, recorded: first, seen: now}, want: restored},
		"a dump, and nobody asks": {look: look{here: other, recorded: first, seen: now}, window: -1, want: failedOver},
		"promoted after an outage of hours": {
			look:      look{here: second, recorded: first, seen: now.Add(-5*time.Hour - time.Minute)},
			reference: now.Add(-5 * time.Hour), want: failedOver,
		},
		"restored under a relay that was there": {
			look: look{here: second, recorded: first, seen: now.Add(-5 * time.Hour)}, reference: now.Add(-time.Hour),
			want: restored,
		},
	} {
		if c.reference.IsZero() {
			c.reference = now
		}
		if c.window == 0 {
			c.window = window
		}
		if got := c.look.verdict(c.reference, c.window); got != c.want {
			t.Errorf("%s: %d, want %d", name, got, c.want)
		}
	}
}

// fences is a store whose fences come from a server that started at a time.
type fences struct {
	core.Store
	started string
}

func (f *fences) Fence(context.Context) (core.Fence, error) {
	return core.Fence{Incarnation: f.started}, nil
}

func (f *fences) Heartbeat(context.Context, core.Heartbeat) (core.HeartbeatAnswer, error) {
	return core.HeartbeatAnswer{}, nil
}

func newTestIdentity(t *testing.T) (*databaseIdentity, *pgxpool.Pool, func(statement string)) {
	t.Helper()
	url := os.Getenv("SERVICES_POSTGRES15_URL")
	if url == "" {
		url = "postgres://postgres@127.0.0.1:15415/posthaste?sslmode=disable"
	}
	pool, err := pgxpool.New(t.Context(), url)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(pool.Close)
	name := "identity_" + strings.ToLower(rand.Text()[:12])
	std := stdlib.OpenDBFromPool(pool)
	t.Cleanup(func() {
		if _, err := pool.Exec(context.Background(), "DROP SCHEMA "+pgx.Identifier{name}.Sanitize()+" CASCADE"); err != nil {
			t.Error(err)
		}
		_ = std.Close()
	})
	if err := schema.Outbox.Up(t.Context(), std, schema.Options{Schema: name}); err != nil {
		t.Fatal(err)
	}
	config := &Config{Schema: name, Logger: slog.New(slog.DiscardHandler), Settings: Settings{}.withDefaults()}
	exec := func(statement string) {
		t.Helper()
		if _, err := pool.Exec(t.Context(), sqltext.In(name, statement)); err != nil {
			t.Fatalf("%s: %v", statement, err)
		}
	}
	exec("SELECT {schema}.outbox_emit('order_created', 'order', '1', '{}')")
	return newDatabaseIdentity(config), pool, exec
}

// newFencedIdentity is the same, with a store whose first fence has been asked for.
func newFencedIdentity(t *testing.T) (d *databaseIdentity, below *fences, store *identityStore, exec func(string)) {
	t.Helper()
	d, pool, exec := newTestIdentity(t)
	below = &fences{started: "1"}
	store = &identityStore{Store: below, identity: d, pool: pool, onPauses: func(context.Context, []core.Pause) {}}
	if err := d.check(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Fence(t.Context()); err != nil {
		t.Fatal(err)
	}
	return d, below, store, exec
}

// TestAFenceLooksAtANewServer: behind a pooler the server changes under a connection that stays.
func TestAFenceLooksAtANewServer(t *testing.T) {
	t.Parallel()
	d, below, store, exec := newFencedIdentity(t)
	exec("UPDATE {schema}.outbox_identity SET timeline = timeline + 1, seen_at = seen_at - interval '1 day'")
	if _, err := store.Fence(t.Context()); err != nil {
		t.Errorf("it looked without a new server: %v", err)
	}
	below.started = "2"
	gone := (*restoredError)(nil)
	if _, err := store.Fence(t.Context()); !errors.As(err, &gone) {
		t.Errorf("a fence on a restored server: %v", err)
	}
	select {
	case <-d.whenMoved():
	default:
		t.Error("the relay stays")
	}
	exec("UPDATE {schema}.outbox_identity SET seen_at = now()")
	if _, err := store.Fence(t.Context()); err != nil {
		t.Errorf("a fence after a failover: %v", err)
	}
	if err := d.check(t.Context(), store.pool); err != nil {
		t.Errorf("it was not written down: %v", err)
	}
}

// TestASignOfLifeNeedsTheRightServer: one that was restored must not be told that the fleet was there just now.
func TestASignOfLifeNeedsTheRightServer(t *testing.T) {
	t.Parallel()
	d, pool, exec := newTestIdentity(t)
	store := &identityStore{Store: &fences{}, identity: d, pool: pool, onPauses: func(context.Context, []core.Pause) {}}
	if err := d.check(t.Context(), pool); err != nil {
		t.Fatal(err)
	}
	fresh := func() (fresh bool) {
		t.Helper()
		d.beatAt = time.Time{}
		if _, err := store.Heartbeat(t.Context(), core.Heartbeat{}); err != nil {
			t.Fatal(err)
		}
		if err := pool.QueryRow(t.Context(),
			sqltext.In(d.config.Schema,
				"SELECT seen_at > now() - interval '1 minute' FROM {schema}.outbox_identity")).Scan(&fresh); err != nil {
			t.Fatal(err)
		}
		return fresh
	}
	exec("UPDATE {schema}.outbox_identity SET seen_at = now() - interval '1 hour'")
	alive := d.alive
	if !fresh() || !d.alive.After(alive) {
		t.Error("no sign of life")
	}
	exec("UPDATE {schema}.outbox_identity SET seen_at = now() - interval '1 hour', timeline = 77")
	// as after a restore: the row says what the relay remembers, and the server is another one
	if d.at.timeline = 77; fresh() {
		t.Error("a sign of life on another server")
	}
}

// K7: a server that has taken over without the sequence is left as well.
func TestAFenceComparesTheSequenceOnANewServer(t *testing.T) {
	t.Parallel()
	d, below, store, exec := newFencedIdentity(t)
	exec("SELECT setval('{schema}.outbox_events_seq_seq', 1, false)")
	if _, err := store.Fence(t.Context()); err != nil {
		t.Errorf("it looked without a new server: %v", err)
	}
	below.started = "2"
	for range 2 { // as long as it is so
		behind := (*sequenceError)(nil)
		if _, err := store.Fence(t.Context()); !errors.As(err, &behind) || behind.last != 0 || behind.highest != 1 {
			t.Fatalf("a fence with a sequence that is behind: %v", err)
		}
	}
	select {
	case <-d.whenMoved():
	default:
		t.Error("the relay stays")
	}
	exec("SELECT setval('{schema}.outbox_events_seq_seq', 1)")
	if _, err := store.Fence(t.Context()); err != nil {
		t.Errorf("a fence after the repair: %v", err)
	}
}
