package chaos

import (
	"bytes"
	"context"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// small is a half in which nothing is ended but relays, and its servers.
func small(t *testing.T, say *server.Output) (context.Context, *servers, torture.Plan) {
	t.Helper()
	executable, err := os.Executable()
	must(t, err)
	// With a mutant it does not go on until every kind of fault has come.
	plan := Plan{
		Duration: 6 * time.Second, Rate: 50, Aggregates: 50, Seed: 1, Folder: t.TempDir(), Executable: executable,
		Mutant: torture.MutantDrop,
	}
	ctx, fail := context.WithCancelCause(t.Context())
	t.Cleanup(func() { fail(nil) })
	s, err := newServers(ctx, plan, NATS, fail, say)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { must(t, s.close()) })
	half := s.plan(plan, NATS)
	half.Schedule = []torture.Fault{torture.Kills(500*time.Millisecond, 1)}
	return ctx, s, half
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Error(err)
	}
}

// kill ends a server's process. Number 0 would be all processes of this test's own group.
func kill(t *testing.T, pid int, signal syscall.Signal) {
	t.Helper()
	if pid <= 0 {
		t.Error("the server does not run")
		return
	}
	must(t, syscall.Kill(pid, signal))
}

func TestAPoolerThatCrashes(t *testing.T) {
	t.Parallel()
	say := &server.Output{}
	ctx, s, half := small(t, say)
	kill(t, s.pooler.Pid(), syscall.SIGABRT)
	must(t, eventually.Within(ctx, time.Minute, "the crash is counted", func() (bool, error) {
		return s.poolerCrashes.Load() == 1, nil
	}))
	must(t, s.pooler.End(syscall.SIGTERM)) // as the fault does
	must(t, s.pooler.Start(ctx))
	report, err := s.play(ctx, half)
	if err != nil {
		t.Fatal(err)
	}
	if line := torture.Line(report.Name, report); !strings.Contains(line, " pooler_crashes=1 ") {
		t.Errorf("the last line is %q", line)
	}
	if !strings.Contains(say.String(), "crash 1 of the pooler: server: PgBouncer ended by itself (signal: aborted") {
		t.Errorf("it says %q", say)
	}
}

func TestAPoolerThatCrashesTooOften(t *testing.T) {
	t.Parallel()
	ctx, s, half := small(t, &server.Output{})
	for crashes := range int64(mostPoolerCrashes + 1) {
		if err := context.Cause(ctx); err != nil {
			t.Fatalf("it was given up after %d crashes: %v", crashes, err)
		}
		kill(t, s.pooler.Pid(), syscall.SIGKILL)
		if err := eventually.Within(t.Context(), time.Minute, "the crash is counted",
			func() (bool, error) { return s.poolerCrashes.Load() == crashes+1, nil }); err != nil {
			t.Fatal(err)
		}
	}
	if pid := s.pooler.Pid(); pid != 0 {
		t.Errorf("it was given up, and runs as process %d", pid)
	}
	if _, err := s.play(ctx, half); err == nil || !strings.Contains(err.Error(), "ended by itself more than 5 times") {
		t.Errorf("the half ends with %v", err)
	}
}

// A broker or a database that ends by itself in the middle of a half ends it.
func TestAServerThatCrashes(t *testing.T) {
	t.Parallel()
	for name, pid := range map[string]func(*servers) (int, error){
		"nats-server": func(s *servers) (int, error) { return s.broker.Pid(), nil },
		"PostgreSQL": func(s *servers) (int, error) {
			text, err := s.database.Text(t.Context(), `split_part(pg_read_file('postmaster.pid'), E'\n', 1)`)
			if err != nil {
				return 0, err
			}
			return strconv.Atoi(text)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ctx, s, half := small(t, &server.Output{})
			victim, err := pid(s)
			if err != nil {
				t.Fatal(err)
			}
			s.say = &firstWord{then: func() { kill(t, victim, syscall.SIGKILL) }}
			if _, err := s.play(ctx, half); err == nil ||
				!strings.Contains(err.Error(), name+" ended by itself (signal: killed") {
				t.Errorf("the half ends with %v", err)
			}
		})
	}
}

// firstWord does something once the run has injected its first fault, and says so.
type firstWord struct {
	once sync.Once
	then func()
}

func (w *firstWord) Write(text []byte) (int, error) {
	if bytes.Contains(text, []byte(": kill ")) {
		w.once.Do(w.then)
	}
	return len(text), nil
}
