package natsjetstream

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	testserver "github.com/posthaste-dev/posthaste/test/kit/server"
)

// server is a nats-server of the test's own.
type server struct {
	*testserver.Server
	folder, address string
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
	s := &server{folder: t.TempDir(), address: address}
	s.Server = &testserver.Server{
		Name: "nats-server", Address: address, Log: filepath.Join(s.folder, "log"), Program: program,
		Args: []string{"-c", s.config()},
	}
	t.Cleanup(s.Close)
	if err := errors.Join(s.configure("secret", ""), s.start(t.Context())); err != nil {
		t.Fatal(err)
	}
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
	if err := s.Start(ctx); err != nil {
		return err
	}
	return eventually.Works(ctx, func() error {
		return s.admin(func(js jetstream.JetStream) error {
			_, err := js.AccountInfo(ctx)
			return err
		})
	})
}

// kill ends the server as a crash would.
func (s *server) kill() error { return s.End(os.Kill) }

// reload makes the server read its configuration again, and returns when the server acts by it.
func (s *server) reload(ctx context.Context, acts func() error) error {
	if err := s.Signal(syscall.SIGHUP); err != nil {
		return err
	}
	return eventually.Works(ctx, acts)
}

// admin lends a connection of an administrator, which no proxy stands before.
func (s *server) admin(use func(js jetstream.JetStream) error) error {
	conn, err := nats.Connect("nats://admin:admin@"+s.address, nats.Timeout(eventually.Patience))
	if err != nil {
		return err
	}
	defer conn.Close()
	js, err := jetstream.New(conn, jetstream.WithDefaultTimeout(eventually.Patience))
	if err != nil {
		return err
	}
	return use(js)
}
