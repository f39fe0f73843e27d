package server

import (
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

func TestMain(m *testing.M) { os.Exit(goroutines.Run(m)) }

// pooler is a PgBouncer that runs. Its database is never asked for anything.
func pooler(t *testing.T, crashed func(error) bool) *Server {
	t.Helper()
	s, err := NewPooler(t.TempDir(), "127.0.0.1:1")
	must(t, err)
	t.Cleanup(s.Close)
	s.Crashed = crashed
	must(t, s.Start(t.Context()))
	return s
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// told waits for what Crashed was told.
func told(t *testing.T, crashes <-chan error) error {
	t.Helper()
	return eventually.Receive(t, "somebody is told of the crash", crashes)
}

func TestAServerThatEndsByItselfIsStartedAgain(t *testing.T) {
	t.Parallel()
	crashes := make(chan error, 10)
	s := pooler(t, func(how error) bool {
		crashes <- how
		return true
	})
	for signal, name := range map[syscall.Signal]string{
		syscall.SIGKILL: "signal: killed", syscall.SIGABRT: "signal: aborted",
	} {
		before := s.Pid()
		must(t, syscall.Kill(before, signal))
		how := told(t, crashes).Error()
		for _, want := range []string{"PgBouncer ended by itself", name, "process up"} { // the last is of its log
			if !strings.Contains(how, want) {
				t.Errorf("%q is not in %q", want, how)
			}
		}
		if now := s.Pid(); now == before || now == 0 {
			t.Errorf("it was process %d, and is %d", before, now)
		}
		must(t, s.Execute(t.Context(), "SHOW VERSION"))
	}
	s.Close()
	if len(crashes) > 0 {
		t.Errorf("it crashed once more: %v", <-crashes)
	}
}

func TestAnEndIsNoCrash(t *testing.T) {
	t.Parallel()
	crashes := make(chan error, 10)
	s := pooler(t, func(how error) bool {
		crashes <- how
		return true
	})
	for _, signal := range []os.Signal{syscall.SIGKILL, syscall.SIGTERM} {
		must(t, s.End(signal))
		if pid := s.Pid(); pid != 0 {
			t.Errorf("it was ended, and runs as process %d", pid)
		}
		must(t, s.End(signal)) // there is nothing to do
		must(t, s.Start(t.Context()))
		must(t, s.Execute(t.Context(), "SHOW VERSION"))
	}
	s.Close() // returns when all that watch it have
	if len(crashes) > 0 {
		t.Errorf("it counts as a crash: %v", <-crashes)
	}
}

// Who ends a server that has just crashed meets who starts it again, before or after. Either way the crash is told
// once, and the server is started by one of them.
func TestAnEndRightAfterACrash(t *testing.T) {
	t.Parallel()
	const rounds = 20
	crashes := make(chan error, 2*rounds)
	s := pooler(t, func(how error) bool {
		crashes <- how
		return true
	})
	for range rounds {
		s.mutex.Lock()
		ended := s.runs.ended
		must(t, s.runs.command.Process.Kill())
		s.mutex.Unlock()
		<-ended
		must(t, s.End(syscall.SIGKILL))
		must(t, s.Start(t.Context()))
	}
	must(t, s.Execute(t.Context(), "SHOW VERSION"))
	s.Close()
	if len(crashes) != rounds {
		t.Errorf("%d crashes were told, and there were %d", len(crashes), rounds)
	}
}

// A server that cannot be started again has crashed once more, until it is left alone. Then it can still be started.
func TestAServerThatCannotBeStartedAgain(t *testing.T) {
	t.Parallel()
	crashes := make(chan error, 10)
	var s *Server
	var program string
	s = pooler(t, func(how error) bool {
		crashes <- how
		if strings.Contains(how.Error(), "ended by itself") {
			program, s.Program = s.Program, "/nowhere/pgbouncer"
			return true
		}
		s.Program = program
		return false
	})
	must(t, syscall.Kill(s.Pid(), syscall.SIGKILL))
	for _, want := range []string{"ended by itself", "start PgBouncer"} {
		if how := told(t, crashes).Error(); !strings.Contains(how, want) {
			t.Errorf("%q is not in %q", want, how)
		}
	}
	if pid := s.Pid(); pid != 0 {
		t.Errorf("it was left alone, and runs as process %d", pid)
	}
	must(t, s.Start(t.Context()))
	must(t, s.Execute(t.Context(), "SHOW VERSION"))
	if err := s.Start(t.Context()); err == nil || !strings.Contains(err.Error(), "runs already") {
		t.Errorf("it was started twice: %v", err)
	}
}
