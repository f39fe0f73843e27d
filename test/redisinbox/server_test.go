package redisinbox

import (
	"net"
	"os/exec"
	"strconv"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/test/port"
)

// server is a redis-server of the test's own, at the same address for its whole life.
type server struct {
	address string
	args    []string
	process *exec.Cmd
}

// startServer starts a server without persistence, unless the settings say otherwise.
func startServer(t *testing.T, settings ...string) *server {
	t.Helper()
	free, err := port.Free()
	if err != nil {
		t.Fatal(err)
	}
	number := strconv.Itoa(free)
	s := &server{address: net.JoinHostPort("127.0.0.1", number)}
	s.args = append([]string{"--bind", "127.0.0.1", "--port", number, "--save", "", "--appendonly", "no", "--dir", t.TempDir()}, settings...)
	s.start(t)
	t.Cleanup(s.kill)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	s.process = exec.Command("redis-server", s.args...)
	s.process.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL} // also if the test's process dies
	if err := s.process.Start(); err != nil {
		t.Fatalf("%v: run services/services up redis", err)
	}
	admin := redis.NewClient(options(s.address))
	defer admin.Close()
	if err := until(t.Context(), func() error {
		err := admin.Ping(t.Context()).Err()
		if redis.HasErrorPrefix(err, "NOAUTH") {
			return nil
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
}

// kill ends the server as a crash would.
func (s *server) kill() {
	_ = s.process.Process.Kill() // it may be dead already
	_ = s.process.Wait()
}

// pause makes the server silent: connections stand, and nothing is answered.
func (s *server) pause(t *testing.T)  { s.signal(t, syscall.SIGSTOP) }
func (s *server) resume(t *testing.T) { s.signal(t, syscall.SIGCONT) }

func (s *server) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.process.Process.Signal(signal); err != nil {
		t.Fatal(err)
	}
}
