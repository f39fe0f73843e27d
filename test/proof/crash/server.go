package crash

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// hook is a trigger that stands still in the middle of the victim's statement.
type hook struct {
	// trigger is what comes behind CREATE.
	trigger string
	// commits tells that the server goes on and the victim hears nothing of it. Else the session dies with it.
	commits bool
}

// hooks are the points on the server. A deferred trigger runs when everything is done but the commit.
var hooks = map[string]hook{
	"claim.after_update": {trigger: `TRIGGER crash AFTER UPDATE ON {schema}.outbox_lanes FOR EACH ROW
		WHEN (NEW.token IS NOT NULL AND NEW.token IS DISTINCT FROM OLD.token) EXECUTE FUNCTION {schema}.crash_wait()`},
	"claim.before_commit": {commits: true, trigger: `CONSTRAINT TRIGGER crash AFTER UPDATE ON {schema}.outbox_lanes ` +
		`INITIALLY DEFERRED FOR EACH ROW
		WHEN (NEW.token IS NOT NULL AND NEW.token IS DISTINCT FROM OLD.token) EXECUTE FUNCTION {schema}.crash_wait()`},
	// Floors begin at 0 in an outbox that is new.
	"floor.after_update": {trigger: `TRIGGER crash AFTER INSERT ON {schema}.outbox_beats FOR EACH ROW
		WHEN (0 < ANY (NEW.floors)) EXECUTE FUNCTION {schema}.crash_wait()`},
	"floor.before_commit": {commits: true, trigger: `CONSTRAINT TRIGGER crash AFTER INSERT ON {schema}.outbox_beats ` +
		`INITIALLY DEFERRED FOR EACH ROW
		WHEN (0 < ANY (NEW.floors)) EXECUTE FUNCTION {schema}.crash_wait()`},
	"settle.mid_batch": {trigger: `TRIGGER crash BEFORE UPDATE ON {schema}.outbox_events FOR EACH ROW
		WHEN (NEW.state = 6) EXECUTE FUNCTION {schema}.crash_wait_second()`},
	"settle.after_update": {trigger: `TRIGGER crash AFTER UPDATE ON {schema}.outbox_events FOR EACH ROW
		WHEN (NEW.state = 6) EXECUTE FUNCTION {schema}.crash_wait()`},
	"settle.before_commit": {commits: true, trigger: `CONSTRAINT TRIGGER crash AFTER UPDATE ON {schema}.outbox_events ` +
		`INITIALLY DEFERRED FOR EACH ROW
		WHEN (NEW.state = 6) EXECUTE FUNCTION {schema}.crash_wait()`},
	"dead.before_insert": {
		trigger: `TRIGGER crash BEFORE INSERT ON {schema}.outbox_dlq FOR EACH ROW EXECUTE FUNCTION {schema}.crash_wait()`,
	},
	"dead.after_insert": {
		trigger: `TRIGGER crash AFTER INSERT ON {schema}.outbox_dlq FOR EACH ROW EXECUTE FUNCTION {schema}.crash_wait()`,
	},
	"dead.before_commit": {commits: true, trigger: `CONSTRAINT TRIGGER crash AFTER INSERT ON {schema}.outbox_dlq ` +
		`INITIALLY DEFERRED FOR EACH ROW
		EXECUTE FUNCTION {schema}.crash_wait()`},
	"redrive.after_insert": {
		trigger: `TRIGGER crash AFTER INSERT ON {schema}.outbox_actions FOR EACH ROW EXECUTE FUNCTION {schema}.crash_wait()`,
	},
}

//go:embed sql/wait.sql
var waitSQL string

// trap is a hook in place: it holds the lock at which the victim's statement will stand still.
type trap struct {
	hook   hook
	pool   *pgxpool.Pool
	schema string
	key    int64
	conn   *pgxpool.Conn // holds the lock; nil when it was given up
}

// newTrap puts a hook into the env's schema.
func newTrap(ctx context.Context, pool *pgxpool.Pool, schema string, h hook) (*trap, error) {
	t := &trap{hook: h, pool: pool, schema: schema, key: 1 + rand.Int64N(1<<31-1)}
	text := strings.NewReplacer("{schema}", schema,
		"{key}", strconv.FormatInt(t.key, 10)).Replace(waitSQL + "\nCREATE " + h.trigger)
	if _, err := pool.Exec(ctx, text, pgx.QueryExecModeSimpleProtocol); err != nil {
		return nil, fmt.Errorf("crash: a hook: %w", err)
	}
	return t, t.close(ctx)
}

// close holds up everybody from now on. Who was let through has ended, and is forgotten.
func (t *trap) close(ctx context.Context) error {
	conn, err := t.pool.Acquire(ctx)
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	for _, statement := range []string{
		fmt.Sprintf("SELECT pg_advisory_lock(%d)", t.key), "DELETE FROM " + t.schema + ".crash_passed",
	} {
		if _, err := conn.Exec(ctx, statement); err != nil {
			return errors.Join(fmt.Errorf("crash: %w", err), conn.Hijack().Close(ctx)) // it may hold the lock
		}
	}
	t.conn = conn
	return nil
}

// open lets everybody through from now on.
func (t *trap) open() error {
	if t.conn == nil {
		return nil
	}
	// Also after an interrupt: the pool must not keep a session that holds the lock.
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	_, err := t.conn.Exec(ctx, "SELECT pg_advisory_unlock($1)", t.key)
	t.conn.Release()
	t.conn = nil
	if err != nil {
		return fmt.Errorf("crash: %w", err)
	}
	return nil
}

// waiting is the session that stands still at the hook; 0: none.
func (t *trap) waiting(ctx context.Context) (session int, err error) {
	err = t.pool.QueryRow(ctx, `SELECT pid FROM pg_locks WHERE locktype = 'advisory' AND NOT granted AND classid = 0 
		AND objid = $1::bigint::oid
		AND database = (SELECT oid FROM pg_database WHERE datname = current_database()) LIMIT 1`, t.key).Scan(&session)
	if errors.Is(err, pgx.ErrNoRows) {
		return 0, nil
	}
	if err != nil {
		return 0, fmt.Errorf("crash: %w", err)
	}
	return session, nil
}

// kill waits until the victim's statement stands still, and kills the victim there: at once, and the session with it,
// or when the server has gone on and committed. It tells whether it came so far.
func (t *trap) kill(ctx context.Context, victim *child, limit time.Duration) (hit bool, err error) {
	for deadline := time.Now().Add(limit); victim.Alive() && time.Now().Before(deadline); {
		session, err := t.catch(ctx, victim)
		if err != nil {
			return false, err
		}
		switch {
		case session == 0:
			err = wait.For(ctx, 3*time.Millisecond)
		case t.hook.commits:
			hit, err = t.commit(ctx, session, victim)
		default:
			hit, err = t.cut(ctx, session, victim)
		}
		if err != nil {
			return false, err
		}
		if hit {
			return true, t.gone(ctx, session)
		}
	}
	return false, nil
}

// cut ends the victim and its session. Nothing of the statement is left.
func (t *trap) cut(ctx context.Context, session int, victim *child) (hit bool, err error) {
	victim.Kill()
	if _, err := t.pool.Exec(ctx, "SELECT pg_terminate_backend($1)", session); err != nil {
		return false, fmt.Errorf("crash: %w", err)
	}
	if err := t.gone(ctx, session); err != nil {
		return false, err
	}
	if err := t.open(); err != nil {
		return false, err
	}
	passed, err := t.passed(ctx)
	return !passed, err
}

// commit lets the server go on while the victim is held still, so that it hears nothing of it, and then kills the
// victim. Where a cancel was on its way when the victim was stopped, nothing is committed: the victim goes on, and
// comes here again.
func (t *trap) commit(ctx context.Context, session int, victim *child) (hit bool, err error) {
	if err := t.open(); err != nil {
		return false, err
	}
	err = eventually.Within(ctx, patience, "the statement that stood still has ended", func() (bool, error) {
		active, err := t.is(ctx, "SELECT FROM pg_stat_activity WHERE pid = $1 AND state = 'active'", session)
		return err != nil || !active, err
	})
	if err != nil {
		return false, err
	}
	if hit, err = t.passed(ctx); hit || err != nil {
		victim.Kill()
		return hit, err
	}
	return false, errors.Join(t.close(ctx), victim.Signal(syscall.SIGCONT))
}

// passed tells whether a statement that stood still was committed.
func (t *trap) passed(ctx context.Context) (bool, error) {
	return t.is(ctx, "SELECT FROM "+t.schema+".crash_passed")
}

// is tells whether there is such a row.
func (t *trap) is(ctx context.Context, query string, args ...any) (there bool, err error) {
	if err := t.pool.QueryRow(ctx, "SELECT EXISTS ("+query+")", args...).Scan(&there); err != nil {
		return false, fmt.Errorf("crash: %w", err)
	}
	return there, nil
}

// catch holds the victim still while its statement does, and lets it go where the statement was given up just
// then.
func (t *trap) catch(ctx context.Context, victim *child) (session int, err error) {
	if session, err = t.waiting(ctx); session == 0 || err != nil {
		return 0, err
	}
	if err := victim.Signal(syscall.SIGSTOP); err != nil {
		return 0, err
	}
	still, err := t.waiting(ctx)
	if err != nil || still == session {
		return session, err
	}
	return 0, victim.Signal(syscall.SIGCONT)
}

// gone waits for the end of a session: it ends when it finds that nobody hears its answer.
func (t *trap) gone(ctx context.Context, session int) error {
	return eventually.Within(ctx, patience, "the session of the dead process is gone", func() (bool, error) {
		there, err := t.is(ctx, "SELECT FROM pg_stat_activity WHERE pid = $1", session)
		return err != nil || !there, err
	})
}
