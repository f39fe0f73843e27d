package redisinbox

import (
	"os"
	"syscall"
	"testing"

	"github.com/redis/go-redis/v9"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	kit "github.com/posthaste-dev/posthaste/test/kit/server"
)

// server is a redis-server of the test's own, at the same address for its whole life.
type server struct {
	*kit.Server
	address string
}

// startServer starts a server without persistence, unless the settings say otherwise.
func startServer(t *testing.T, settings ...string) *server {
	t.Helper()
	redis, err := kit.NewRedis(t.TempDir(), settings...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(redis.Close)
	s := &server{redis, redis.Address}
	s.start(t)
	return s
}

func (s *server) start(t *testing.T) {
	t.Helper()
	if err := s.Start(t.Context()); err != nil {
		t.Fatalf("%v: run services/services up redis", err)
	}
	admin := redis.NewClient(options(s.address))
	defer admin.Close()
	if err := eventually.Works(t.Context(), func() error {
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
func (s *server) kill() { _ = s.End(os.Kill) } // it may be dead already

// pause makes the server silent: connections stand, and nothing is answered.
func (s *server) pause(t *testing.T)  { s.signal(t, syscall.SIGSTOP) }
func (s *server) resume(t *testing.T) { s.signal(t, syscall.SIGCONT) }

func (s *server) signal(t *testing.T, signal syscall.Signal) {
	t.Helper()
	if err := s.Signal(signal); err != nil {
		t.Fatal(err)
	}
}
