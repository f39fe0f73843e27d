package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	testserver "github.com/posthaste-dev/posthaste/test/server"
)

// server is a nats-server of the test's own.
type server struct {
	binary, folder string
	address        string
	process        *exec.Cmd
}

func startServer(t *testing.T) *server {
	t.Helper()
	address, err := testserver.FreeAddress()
	if err != nil {
		t.Fatal(err)
	}
	program, err := testserver.NATSProgram()
	if err != nil {
		t.Fatal(err)
	}
	s := &server{binary: program, folder: t.TempDir(), address: address}
	if err := errors.Join(s.configure("secret", ""), s.start(t.Context())); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.kill() })
	return s
}

const maxPayload = 65536

// configure writes the server's configuration: the password of the relay, and a subject that it may not
// publish to.
func (s *server) configure(password, denied string) error {
	deny := ""
	if denied != "" {
		deny = fmt.Sprintf(`permissions: { publish: { deny: [%q] } }`, denied)
	}
	text := fmt.Sprintf(`
		listen: %q
		max_payload: %d
		jetstream: { store_dir: %q }
		authorization: { users: [
			{ user: admin, password: admin }
			{ user: relay, password: %q, %s }
		] }`, s.address, maxPayload, s.folder, password, deny)
	return os.WriteFile(s.config(), []byte(text), 0o600)
}

func (s *server) config() string { return filepath.Join(s.folder, "nats.conf") }

func (s *server) start(ctx context.Context) error {
	s.process = exec.Command(s.binary, "-c", s.config(), "-l", filepath.Join(s.folder, "log"))
	if err := s.process.Start(); err != nil {
		return err
	}
	return until(ctx, func() error {
		return s.admin(func(js jetstream.JetStream) error {
			_, err := js.AccountInfo(ctx)
			return err
		})
	})
}

// kill ends the server as a crash would.
func (s *server) kill() error {
	if err := s.process.Process.Kill(); err != nil {
		return err
	}
	_ = s.process.Wait()
	return nil
}

// reload makes the server read its configuration again, and returns when the server acts by it.
func (s *server) reload(ctx context.Context, acts func() error) error {
	if err := s.process.Process.Signal(syscall.SIGHUP); err != nil {
		return err
	}
	return until(ctx, acts)
}

// admin lends a connection of an administrator, which no proxy stands before.
func (s *server) admin(use func(js jetstream.JetStream) error) error {
	conn, err := nats.Connect("nats://admin:admin@"+s.address, nats.Timeout(patience))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(patience))
	if err != nil {
		return err
	}
	return use(js)
}

// patience is how long a test waits for what takes a moment: only what hangs takes as long.
const patience = 3 * time.Minute

// until tries again until it works.
func until(ctx context.Context, try func() error) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		err := try()
		if err == nil {
			return nil
		}
		select {
		case <-time.After(10 * time.Millisecond):
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}
