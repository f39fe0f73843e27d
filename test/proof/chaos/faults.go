package chaos

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"os"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Faults of the servers. None explains anything by itself, but for the broker's restart; see package check.
const (
	DatabaseRestart check.FaultKind = "database_restart" // stopped in order: sessions are ended, all is written
	DatabaseCrash   check.FaultKind = "database_crash"   // stopped as in a crash: the next start recovers from the log
	// BackendKilled is one process of the server that was killed, as by the kernel when memory runs out: all others are
	// ended, and the server recovers from the log without a restart. No producer commits without waiting for the disk, so
	// nothing is lost by it.
	BackendKilled check.FaultKind = "backend_killed"
	PoolerRestart check.FaultKind = "pooler_restart"
	ClockOff      check.FaultKind = "clock_off" // the database's clock was wrong the whole time
)

// restoring is how long a server may take to come back. It is waited for also when the schedule is over.
func restoring(ctx context.Context) (context.Context, context.CancelFunc) {
	return context.WithTimeout(context.WithoutCancel(ctx), 3*time.Minute)
}

func (s *servers) databaseStops(kind check.FaultKind, mode cluster.Mode, every time.Duration, least int) torture.Fault {
	return torture.Fault{
		Kind: kind, Every: every, Least: least, Inject: func(ctx context.Context, _ *torture.Target) (check.Fault, error) {
			s.turn.Lock()
			defer s.turn.Unlock()
			ctx, cancel := restoring(ctx)
			defer cancel()
			switch err := s.stopDatabase(ctx, mode); {
			case errors.Is(err, cluster.ErrNotStopped):
				_, _ = fmt.Fprintln(s.say, err) // the cause is worth knowing, and the run goes on without it
				return check.Fault{}, s.revive(ctx)
			case err != nil:
				return check.Fault{}, err
			}
			return check.Fault{}, s.database.Start(ctx)
		},
	}
}

// stopDatabase gives a server less time to stop than it has to come back: one that hangs is killed and started again.
func (s *servers) stopDatabase(ctx context.Context, mode cluster.Mode) error {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	return s.database.Stop(ctx, mode)
}

// backendKills kills one session's process, when a prepared transaction has been open for long enough that relays know
// it: it waits for one.
func (s *servers) backendKills(every time.Duration, least int) torture.Fault {
	inject := func(ctx context.Context, on *torture.Target) (check.Fault, error) {
		var pid int
		ready := func() (bool, error) {
			err := on.Env.Pool.QueryRow(ctx, `SELECT pid FROM pg_stat_activity
				WHERE backend_type = 'client backend' AND datname = current_database() AND pid <> pg_backend_pid()
				  AND EXISTS (SELECT FROM pg_prepared_xacts WHERE starts_with(gid, $1) 
				  AND prepared < clock_timestamp() - interval '1 s')
				ORDER BY random() LIMIT 1`, on.Env.Run).Scan(&pid)
			return err == nil, nil // while the server is away, or nothing is prepared, it goes on waiting
		}
		if err := eventually.Within(ctx, time.Minute, "a prepared transaction is open", ready); err != nil {
			return check.Fault{}, torture.ErrMissed
		}
		s.turn.Lock()
		defer s.turn.Unlock()
		killing, cancel := restoring(ctx)
		defer cancel()
		switch err := s.database.KillBackend(killing, pid); {
		case errors.Is(err, os.ErrProcessDone):
			return check.Fault{}, torture.ErrMissed
		case errors.Is(err, cluster.ErrNotRecovered):
			return check.Fault{}, s.revive(ctx)
		default:
			return check.Fault{}, err
		}
	}
	return torture.Fault{Kind: BackendKilled, Every: every, Least: least, Inject: inject}
}

// revive kills a server that does not recover or does not stop, as an operator would, and starts it again. It was
// another fault than the injected one, which missed.
func (s *servers) revive(ctx context.Context) error {
	ctx, cancel := restoring(ctx) // of its own: the server has used up the time of whoever waited for it
	defer cancel()
	if err := errors.Join(s.database.Kill(ctx), s.database.Start(ctx)); err != nil {
		return err
	}
	return torture.ErrMissed
}

// poolerRestarts kills the pooler with all connections of both sides.
func (s *servers) poolerRestarts(every time.Duration, least int) torture.Fault {
	return torture.Fault{
		Kind: PoolerRestart, Every: every, Least: least,
		Inject: func(ctx context.Context, on *torture.Target) (check.Fault, error) {
			ctx, cancel := restoring(ctx)
			defer cancel()
			signal := syscall.SIGKILL
			if on.Random.IntN(2) == 0 {
				signal = syscall.SIGTERM
			}
			if err := s.pooler.End(signal); err != nil {
				return check.Fault{}, err
			}
			return check.Fault{}, s.pooler.Start(ctx)
		},
	}
}

// brokerRestarts kills the broker and lets it be away for a while.
func (s *servers) brokerRestarts(every time.Duration, least int) torture.Fault {
	return torture.Fault{
		Kind: check.BrokerRestart, Every: every, Least: least,
		Inject: func(ctx context.Context, on *torture.Target) (check.Fault, error) {
			back, err := on.BrokerAway()
			if err != nil {
				return check.Fault{}, err
			}
			fault := check.Fault{Since: micros()}
			if err := s.broker.End(os.Kill); err != nil {
				return fault, err
			}
			fault.From = micros()
			away := time.NewTimer(time.Duration(300+on.Random.IntN(1500)) * time.Millisecond)
			defer away.Stop()
			select {
			case <-away.C:
			case <-ctx.Done(): // the schedule is over
			}
			fault.To = micros()
			ctx, cancel := restoring(ctx)
			defer cancel()
			return fault, errors.Join(s.broker.Start(ctx), back())
		},
	}
}

// droppedAnswers lets the emulator accept publishes and not answer: it cuts the connection, or lets the publisher wait.
func (s *servers) droppedAnswers(every time.Duration, least int) torture.Fault {
	return torture.Fault{
		Kind: check.AnswersDropped, Every: every, Least: least,
		Inject: func(ctx context.Context, on *torture.Target) (check.Fault, error) {
			mode := []string{"reset", "hang"}[on.Random.IntN(2)]
			fault := check.Fault{From: micros(), Detail: mode}
			set := fmt.Sprintf(`{"kind":"drop_answer","mode":%q,"every":3}`, mode)
			if err := s.faults(ctx, http.MethodPost, set); err != nil {
				return fault, torture.ErrMissed // the emulator is away
			}
			while := time.NewTimer(time.Duration(300+on.Random.IntN(700)) * time.Millisecond)
			defer while.Stop()
			select {
			case <-while.C:
			case <-ctx.Done(): // the schedule is over
			}
			ctx, cancel := restoring(ctx)
			defer cancel()
			err := eventually.Within(ctx, 3*time.Minute, "the emulator answers again", func() (bool, error) {
				err := s.faults(ctx, http.MethodDelete, "")
				return err == nil, err
			})
			return fault, err
		},
	}
}

// faults speaks to the emulator's fault port.
func (s *servers) faults(ctx context.Context, method, body string) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://"+s.faultPort+"/faults", bytes.NewBufferString(body))
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	defer answer.Body.Close()
	if answer.StatusCode >= http.StatusBadRequest {
		return fmt.Errorf("chaos: the fault port says %s", answer.Status)
	}
	return nil
}

// clockOff is there from the beginning; it is injected once, to be in the log.
func clockOff(by time.Duration) torture.Fault {
	logged := false
	return torture.Fault{
		Kind: ClockOff, Every: time.Second, Least: 1, Inject: func(context.Context, *torture.Target) (check.Fault, error) {
			if logged {
				return check.Fault{}, torture.ErrMissed
			}
			logged = true
			return check.Fault{Detail: fmt.Sprintf("the database's, by %s", by)}, nil
		},
	}
}

func micros() int64 { return time.Now().UnixMicro() }
