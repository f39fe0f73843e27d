package relay

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/clean"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/sqlstate"
	"github.com/posthaste-dev/posthaste/relay/internal/sqltext"
)

// A database that was restored from a backup, or copied, has events in it that were sent long ago, or that
// another fleet sends. So the outbox keeps where it lives (outbox_identity), and a relay that finds it elsewhere
// decides by what is in the database:
//
//   - The same cluster on another timeline, and the fleet was seen shortly before: a failover. It is written
//     down, and the relay goes on.
//   - The same, but the last sign of life is old: restored to a point in time. The relay pauses.
//   - Another cluster: restored from a dump, or copied. The relay pauses.
//
// A relay that has just started counts "shortly before" back from now. One that was running counts from when it last
// saw the old server: so after an outage of any length a failover needs no person.

//go:embed sql/identity_read.sql
var identityReadSQL string

//go:embed sql/identity_update.sql
var identityUpdateSQL string

//go:embed sql/identity_seen.sql
var identitySeenSQL string

// The times that are not settings.
const (
	seenPeriod  = 30 * time.Second // between two signs of life; less if the window is short
	pausePeriod = time.Second      // between two checks while paused
	sayPeriod   = time.Minute      // between two lines about it in the log
)

var errStandby = errors.New("relay: the database is a standby, in recovery: the relay needs the primary")

// server identifies one incarnation of the data among its copies.
type server struct {
	system   int64
	timeline int32
}

// look is what the database says about its identity.
type look struct {
	standby  bool
	here     server
	now      time.Time
	recorded server    // the server on which the outbox was last seen; zero: on none yet
	seen     time.Time // and when
	empty    bool      // there is no event at all
}

// verdict is what a look means.
type verdict int

const (
	sameDatabase verdict = iota
	adopted
	failedOver
	restored
)

// verdict decides what a look means. The reference is the last moment at which the old server is known to have lived.
func (l look) verdict(reference time.Time, window time.Duration) verdict {
	switch {
	case l.recorded == l.here:
		return sameDatabase
	case l.recorded == server{} || l.empty:
		return adopted
	case window < 0, l.recorded.system == l.here.system && reference.Sub(l.seen) <= window:
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
	if e.look.recorded.system != e.look.here.system {
		return "relay: the outbox comes from another cluster: this database was restored from a dump, or copied, or the " +
			"cluster was upgraded"
	}
	return fmt.Sprintf("relay: the database was restored to a point in time: it is on timeline %d, and the relays were "+
		"last seen on timeline %d at %s",
		e.look.here.timeline, e.look.recorded.timeline, e.look.seen.UTC().Format(time.RFC3339))
}

func (e *restoredError) say(ctx context.Context, logger *slog.Logger, pending []slog.Attr) {
	logger.LogAttrs(ctx, slog.LevelError, "paused: the database was restored or copied", append(pending,
		slog.String("unknown",
			"which of these were published after the backup was taken; they would be sent again, under the same ids"),
		slog.String("go_on",
			"`outboxctl resume --restored --reason ...`, operator.Operator.Resume, "+
				"or SELECT outbox_resume('who', 'why', 'restored')"))...)
}

// databaseIdentity knows on which server the outbox is, and lets no connection of the relay work on another one.
type databaseIdentity struct {
	config           *Config
	look, move, seen string
	sequence         string

	mutex           sync.Mutex
	at              server        // zero: not known yet
	alive           time.Time     // when the fleet was last seen there, by the database's clock
	beatAt          time.Time     // when the next sign of life is due, by ours
	identityUnknown bool          // this role may not read it
	moved           chan struct{} // closed when the outbox turned out to be on another server, and that is no failover
}

func newDatabaseIdentity(config *Config) *databaseIdentity {
	text := func(sql string) string { return sqltext.In(config.Schema, sql) }
	return &databaseIdentity{
		config: config, look: text(identityReadSQL), move: text(identityUpdateSQL), seen: text(identitySeenSQL),
		sequence: text(sequenceSQL), moved: make(chan struct{}),
	}
}

// guard has every new connection checked before it is used.
func (d *databaseIdentity) guard(config *pgxpool.Config) {
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		if !d.known() {
			return nil
		}
		return d.check(ctx, conn)
	}
}

// known tells whether there is something to compare with.
func (d *databaseIdentity) known() bool {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return !d.identityUnknown && d.at != server{}
}

// querier is a connection or a pool.
type querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
	Exec(ctx context.Context, sql string, args ...any) (pgconn.CommandTag, error)
}

// check reads the identity, and fails where the relay must not work.
func (d *databaseIdentity) check(ctx context.Context, db querier) error {
	seen, err := d.query(ctx, db)
	switch {
	case sqlstate.PermissionDenied(err): // its grants are older than the migration: it goes on without a check
		d.setUnknown(ctx, err)
		return nil
	case err != nil:
		return fmt.Errorf("relay: %w", err)
	case seen.standby:
		return errStandby
	}
	verdict := seen.verdict(d.reference(seen), d.config.FailoverWindow)
	if verdict == restored {
		d.setMoved()
		return &restoredError{look: seen}
	}
	if verdict != sameDatabase {
		if err := d.record(ctx, db, verdict, seen); sqlstate.PermissionDenied(err) {
			d.setUnknown(ctx, err)
			return nil
		} else if err != nil {
			return err
		}
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.at, d.alive = seen.here, seen.now
	return nil
}

func (d *databaseIdentity) query(ctx context.Context, db querier) (look, error) {
	var l look
	var system *int64
	var timeline *int32
	var at *time.Time
	err := db.QueryRow(ctx, d.look).Scan(&l.standby, &l.here.system, &l.here.timeline, &l.now, &system, &timeline,
		&at, &l.empty)
	if err == nil && system != nil {
		l.recorded, l.seen = server{system: *system, timeline: *timeline}, *at
	}
	return l, err //nolint:wrapcheck // wrapped by the caller
}

func (d *databaseIdentity) setUnknown(ctx context.Context, err error) {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if !d.identityUnknown {
		d.identityUnknown = true
		d.config.Logger.WarnContext(ctx, "a restored database will not be noticed: this role may not ask which server it "+
			"is on; run `outboxctl grant relay <role>`",
			slog.String("error", clean.Error(err)))
	}
}

// reference is the last moment at which the old server is known to have lived.
func (d *databaseIdentity) reference(l look) time.Time {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.at == l.recorded && d.at != (server{}) {
		return d.alive
	}
	return l.now
}

// record writes down that the outbox is on this server now.
func (d *databaseIdentity) record(ctx context.Context, db querier, verdict verdict, l look) error {
	var system *int64
	var timeline *int32
	if l.recorded != (server{}) {
		system, timeline = &l.recorded.system, &l.recorded.timeline
	}
	done, err := db.Exec(ctx, d.move, l.here.system, l.here.timeline, system, timeline)
	if err != nil {
		return fmt.Errorf("relay: %w", err)
	}
	if verdict == failedOver && done.RowsAffected() > 0 { // one relay of the fleet logs it
		d.config.Logger.WarnContext(ctx, "the database has failed over", slog.Int("timeline", int(l.here.timeline)),
			slog.Int("timeline_before", int(l.recorded.timeline)), slog.Time("last_seen", l.seen))
	}
	return nil
}

// reset forgets that the outbox has moved, for a new core on this server.
func (d *databaseIdentity) reset() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	d.moved = make(chan struct{})
}

// whenMoved is closed when that core must end.
func (d *databaseIdentity) whenMoved() <-chan struct{} {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	return d.moved
}

// setMoved ends the core that works on this server.
func (d *databaseIdentity) setMoved() {
	d.mutex.Lock()
	defer d.mutex.Unlock()
	select {
	case <-d.moved:
	default:
		close(d.moved)
	}
}

// beat writes now and then that the fleet is alive, and remembers when it did. Nothing depends on a single one.
func (d *databaseIdentity) beat(ctx context.Context, db querier) {
	period := seenPeriod
	if d.config.FailoverWindow > 0 {
		period = min(period, d.config.FailoverWindow/4)
	}
	d.mutex.Lock()
	at, due := d.at, !d.identityUnknown && d.at != server{} && !time.Now().Before(d.beatAt)
	if due {
		d.beatAt = time.Now().Add(period)
	}
	d.mutex.Unlock()
	if !due {
		return
	}
	var now time.Time
	if err := db.QueryRow(ctx, d.seen, at.system, at.timeline, (period / 2).Microseconds()).Scan(&now); err != nil {
		return // the next one will do
	}
	d.mutex.Lock()
	defer d.mutex.Unlock()
	if d.at == at {
		d.alive = now
	}
}

// identityStore is the store of a relay that works on no other server.
type identityStore struct {
	core.Store
	identity    *databaseIdentity
	pool        *pgxpool.Pool
	onPauses    func(ctx context.Context, pauses []core.Pause)
	incarnation string // of the server that was checked last; one fence runs at a time
}

// Heartbeat is the store's. Every relay makes it, also one without lanes.
func (s *identityStore) Heartbeat(ctx context.Context, beat core.Heartbeat) (core.HeartbeatAnswer, error) {
	answer, err := s.Store.Heartbeat(ctx, beat)
	if err == nil {
		s.onPauses(ctx, answer.Pauses)
		s.identity.beat(ctx, s.pool)
	}
	return answer, err
}

// Fence is the store's, on a server that was checked. Behind a pooler another server can take over without a new
// connection, so a fence that names a new incarnation checks it: nothing is read on a server before its first fence.
func (s *identityStore) Fence(ctx context.Context) (core.Fence, error) {
	fence, err := s.Store.Fence(ctx)
	if err != nil || fence.Standby {
		return fence, err
	}
	if fence.Incarnation != s.incarnation {
		if err := s.checkServer(ctx); err != nil {
			return core.Fence{}, err
		}
	}
	s.incarnation = fence.Incarnation
	return fence, nil
}

// checkServer decides whether to work on a server that was not checked yet.
func (s *identityStore) checkServer(ctx context.Context) error {
	if s.identity.known() {
		if err := s.identity.check(ctx, s.pool); err != nil {
			return err
		}
	}
	err := s.identity.checkSequence(ctx, s.pool)
	if behind := (*sequenceError)(nil); errors.As(err, &behind) {
		s.identity.setMoved()
	}
	return err
}
