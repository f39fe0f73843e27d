package relay

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// A database that was restored from a backup, or copied, has events in it that were sent long ago, or that
// another fleet sends. So the outbox keeps where it lives (outbox_home), and a relay that finds it elsewhere
// decides by what is in the database:
//
//   - The same cluster on another timeline, and the fleet was seen shortly before: a failover. It is noted, and
//     the relay goes on.
//   - The same, but the last sign of life is old: restored to a point in time. The relay pauses.
//   - Another cluster: restored from a dump, or copied. The relay pauses.
//
// "Shortly before" is counted back from now by a relay that has just started, and by one that was here from when
// it last saw the old server: so an outage of any length before a failover needs no hand.

//go:embed sql/home_look.sql
var homeLookSQL string

//go:embed sql/home_move.sql
var homeMoveSQL string

//go:embed sql/home_seen.sql
var homeSeenSQL string

// The times of it that are no settings.
const (
	seenPeriod  = 30 * time.Second // between two signs of life; less if the window is short
	pausePeriod = time.Second      // between two looks while paused
	sayPeriod   = time.Minute      // between two lines about it in the log
)

var errStandby = errors.New("relay: the database is a standby, in recovery: the relay needs the primary")

// server tells one incarnation of the data from its copies.
type server struct {
	system   int64
	timeline int32
}

// look is what the database says about where it is.
type look struct {
	standby bool
	here    server
	now     time.Time
	home    server    // where the outbox was last seen; zero: no relay was here yet
	seen    time.Time // and when
	empty   bool      // there is no event at all
}

// verdict is what a look means.
type verdict int

const (
	atHome verdict = iota
	adopted
	failedOver
	restored
)

// judge decides. The reference is the last moment at which the old server is known to have lived.
func (l look) judge(reference time.Time, window time.Duration) verdict {
	switch {
	case l.home == l.here:
		return atHome
	case l.home == server{} || l.empty:
		return adopted
	case window < 0, l.home.system == l.here.system && reference.Sub(l.seen) <= window:
		return failedOver
	default:
		return restored
	}
}

// restoredError says that the relay must not go on by itself.
type restoredError struct {
	look look
}

func (e *restoredError) Error() string {
	if e.look.home.system != e.look.here.system {
		return "relay: the outbox comes from another cluster: this database was restored from a dump, or copied, or the cluster was upgraded"
	}
	return fmt.Sprintf("relay: the database was restored to a point in time: it is on timeline %d, and the relays were last seen on timeline %d at %s",
		e.look.here.timeline, e.look.home.timeline, e.look.seen.UTC().Format(time.RFC3339))
}

func (e *restoredError) say(ctx context.Context, logger *slog.Logger, pending []slog.Attr) {
	logger.LogAttrs(ctx, slog.LevelError, "paused: the database was restored or copied", append(pending,
		slog.String("unknown",
			"which of these were published after the backup was taken; they would be sent again, under the same ids"),
		slog.String("go_on",
			"`outboxctl resume --restored`, relay.Operator.Resume, or SELECT outbox_resume('who', 'why', 'restored')"))...)
}

// home knows where the outbox lives, and lets no connection of the relay work anywhere else.
type home struct {
	config           *Config
	look, move, seen string
	sequence         string

	mutex  sync.Mutex
	at     server        // zero: not known yet
	alive  time.Time     // when it was last seen there, by the database's clock
	beatAt time.Time     // when the next sign of life is due, by ours
	blind  bool          // this role may not ask
	moved  chan struct{} // closed when the outbox turned out to be elsewhere, and that is no failover
}

func newHome(config *Config) *home {
	text := func(sql string) string { return inSchema(sql, config.Schema) }
	return &home{
		config: config, look: text(homeLookSQL), move: text(homeMoveSQL), seen: text(homeSeenSQL),
		sequence: text(sequenceSQL), moved: make(chan struct{}),
	}
}

// inSchema puts the schema's name into a statement and leaves its comments out.
func inSchema(sql, schema string) string {
	var lines []string
	for line := range strings.Lines(sql) {
		if !strings.HasPrefix(line, "--") {
			lines = append(lines, line)
		}
	}
	return strings.ReplaceAll(strings.TrimSpace(strings.Join(lines, "")), "{schema}", pgx.Identifier{schema}.Sanitize())
}

// guard has every new connection looked at before it is used.
func (h *home) guard(config *pgxpool.Config) {
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if !h.known() {
			return nil
		}
		return h.check(ctx, conn)
	}
}

// known tells whether there is something to compare with.
func (h *home) known() bool {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return !h.blind && h.at != server{}
}

// asker is a connection or a pool.
type asker interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// check looks, and fails where the relay must not work.
func (h *home) check(ctx context.Context, db asker) error {
	seen, err := h.ask(ctx, db)
	switch {
	case refused(err):
		h.shutEyes(ctx, err)
		return nil
	case err != nil:
		return fmt.Errorf("relay: %w", err)
	case seen.standby:
		return errStandby
	}
	verdict := seen.judge(h.reference(seen), h.config.FailoverWindow)
	if verdict == restored {
		h.leave()
		return &restoredError{look: seen}
	}
	if verdict != atHome {
		if err := h.note(ctx, db, verdict, seen); refused(err) {
			h.shutEyes(ctx, err)
			return nil
		} else if err != nil {
			return err
		}
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.at, h.alive = seen.here, seen.now
	return nil
}

func (h *home) ask(ctx context.Context, db asker) (look, error) {
	var l look
	var system *int64
	var timeline *int32
	var at *time.Time
	err := db.QueryRow(ctx, h.look).Scan(&l.standby, &l.here.system, &l.here.timeline, &l.now, &system, &timeline, &at, &l.empty)
	if err == nil && system != nil {
		l.home, l.seen = server{system: *system, timeline: *timeline}, *at
	}
	return l, err //nolint:wrapcheck // wrapped by the caller
}

// refused tells whether the role lacks a right. A relay whose grants are older than the migration goes on without.
func refused(err error) bool {
	refusal := (*pgconn.PgError)(nil)
	return errors.As(err, &refusal) && refusal.Code == "42501"
}

func (h *home) shutEyes(ctx context.Context, err error) {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if !h.blind {
		h.blind = true
		h.config.Logger.WarnContext(ctx, "a restored database will not be noticed: this role may not ask which server it is on; run `outboxctl grant relay <role>`",
			slog.String("error", clean.Error(err)))
	}
}

// reference is the last moment at which the old server is known to have lived.
func (h *home) reference(l look) time.Time {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.at == l.home && h.at != (server{}) {
		return h.alive
	}
	return l.now
}

// note writes down that the outbox lives here now.
func (h *home) note(ctx context.Context, db asker, verdict verdict, l look) error {
	var system *int64
	var timeline *int32
	if l.home != (server{}) {
		system, timeline = &l.home.system, &l.home.timeline
	}
	done, err := db.Exec(ctx, h.move, l.here.system, l.here.timeline, system, timeline)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if verdict == failedOver && done.RowsAffected() > 0 { // of a whole fleet one says it
		h.config.Logger.WarnContext(ctx, "the database has failed over", slog.Int("timeline", int(l.here.timeline)),
			slog.Int("timeline_before", int(l.home.timeline)), slog.Time("last_seen", l.seen))
	}
	return nil
}

// arrive begins a life here.
func (h *home) arrive() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	h.moved = make(chan struct{})
}

// elsewhere is closed when that life must end.
func (h *home) elsewhere() <-chan struct{} {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.moved
}

// leave ends the life of the core that works here.
func (h *home) leave() {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	select {
	case <-h.moved:
	default:
		close(h.moved)
	}
}

// beat says now and then that the fleet is alive, and remembers when it said so. Nothing depends on a single one.
func (h *home) beat(ctx context.Context, db asker) {
	period := seenPeriod
	if h.config.FailoverWindow > 0 {
		period = min(period, h.config.FailoverWindow/4)
	}
	h.mutex.Lock()
	at, due := h.at, !h.blind && h.at != server{} && !time.Now().Before(h.beatAt)
	if due {
		h.beatAt = time.Now().Add(period)
	}
	h.mutex.Unlock()
	if !due {
		return
	}
	var now time.Time
	if err := db.QueryRow(ctx, h.seen, at.system, at.timeline, (period / 2).Microseconds()).Scan(&now); err != nil {
		return // the next one will do
	}
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.at == at {
		h.alive = now
	}
}

// homely is the store of a relay that stays at home.
type homely struct {
	core.Store
	home        *home
	pool        *pgxpool.Pool
	hear        func(ctx context.Context, pauses []core.Pause)
	incarnation string // of the server that was looked at last; one fence runs at a time
}

// Heartbeat is the store's. Every relay makes it, also one without lanes.
func (s *homely) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	answer, err := s.Store.Heartbeat(ctx, beat)
	if err == nil {
		s.hear(ctx, answer.Pauses)
		s.home.beat(ctx, s.pool)
	}
	return answer, err
}

// Fence is the store's, on a server that was looked at: where a pooler stands between, another server can come
// without a new connection, and nothing is read before a fence on it.
func (s *homely) Fence(ctx context.Context) (core.Fence, error) {
	fence, err := s.Store.Fence(ctx)
	if err != nil || fence.Standby {
		return fence, err
	}
	if fence.Incarnation != s.incarnation {
		if err := s.lookAround(ctx); err != nil {
			return core.Fence{}, err
		}
	}
	s.incarnation = fence.Incarnation
	return fence, nil
}

// lookAround decides whether to work on a server that was not looked at.
func (s *homely) lookAround(ctx context.Context) error {
	if s.home.known() {
		if err := s.home.check(ctx, s.pool); err != nil {
			return err
		}
	}
	err := s.home.checkSequence(ctx, s.pool)
	if behind := (*sequenceError)(nil); errors.As(err, &behind) {
		s.home.leave()
	}
	return err
}
