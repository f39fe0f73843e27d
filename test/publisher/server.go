package publisher

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"github.com/posthaste-dev/posthaste/test/chaos"
	"github.com/posthaste-dev/posthaste/test/cluster"
)

// Server is a broker of the proof's own, which it may stop and start again on the same address.
type Server struct {
	// Address is host:port.
	Address string
	name    string
	log     string
	program string
	args    []string
	command *exec.Cmd
	ended   chan struct{}
}

// NewNATS prepares a NATS server whose streams survive its death, and does not start it. More are added to its arguments.
func NewNATS(folder string, more ...string) (*Server, error) {
	program, err := installed("nats-server-*/nats-server")
	if err != nil {
		return nil, err
	}
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	_, port, _ := strings.Cut(address, ":")
	args := []string{"--addr", "127.0.0.1", "--port", port, "--jetstream", "--store_dir", filepath.Join(folder, "nats")}
	return &Server{Address: address, name: "nats-server", log: filepath.Join(folder, "nats.log"), program: program, args: append(args, more...)}, nil
}

// NewEmulator prepares a Pub/Sub emulator whose journal survives its death, and does not start it. The executable is one
// that calls [chaos.RunEmulator] when [chaos.Emulator] is its first argument.
func NewEmulator(folder, executable string) (*Server, error) {
	address, err := freeAddress()
	if err != nil {
		return nil, err
	}
	faults, err := freeAddress()
	if err != nil {
		return nil, err
	}
	return &Server{
		Address: address, name: "the Pub/Sub emulator", log: filepath.Join(folder, "emulator.log"), program: executable,
		args: []string{chaos.Emulator, address, faults, filepath.Join(folder, "emulator")},
	}, nil
}

// Start starts the server and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("publisher: %w", err)
	}
	defer log.Close() // the server has its own
	command := exec.Command(s.program, s.args...)
	command.Stdout, command.Stderr = log, log
	// A group of its own, so that a Ctrl-C is for the proof, and an end with the proof, however that ends.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return fmt.Errorf("publisher: start %s: %w", s.name, err)
	}
	ended := make(chan struct{})
	s.command, s.ended = command, ended
	go func() {
		defer close(ended)
		_ = command.Wait() // how it ended is in its log
	}()
	return cluster.Until(ctx, s.name+" answers", func() (bool, error) {
		select {
		case <-ended:
			return true, fmt.Errorf("publisher: %s ended while it started; see %s", s.name, s.log)
		default:
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
		if err != nil {
			return false, fmt.Errorf("publisher: %w", err)
		}
		return true, conn.Close()
	})
}

// End ends the server by a signal and returns when it is gone.
func (s *Server) End(signal os.Signal) error {
	if err := s.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("publisher: end %s: %w", s.name, err)
	}
	<-s.ended
	return nil
}

// Close ends whatever runs.
func (s *Server) Close() {
	if s != nil && s.ended != nil {
		_ = s.End(os.Kill)
	}
}

// freeAddress has a port below those that the system gives to outgoing connections: while a server is down, a client that
// tries one of those again and again gets connected to itself in the end.
func freeAddress() (string, error) {
	for range 100 {
		address := "127.0.0.1:" + strconv.Itoa(20_000+rand.IntN(12_000))
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		if err != nil {
			continue
		}
		return address, listener.Close()
	}
	return "", errors.New("publisher: there is no free port")
}

// installed finds a program that `make services` has put into its folder.
func installed(pattern string) (string, error) {
	folder := os.Getenv("POSTHASTE_SERVICES_DIR")
	if folder == "" && os.Geteuid() == 0 {
		folder = "/var/tmp/posthaste-services"
	}
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("publisher: %w", err)
		}
		folder = filepath.Join(cache, "posthaste", "services")
	}
	found, err := filepath.Glob(filepath.Join(folder, "tools", pattern))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("publisher: there is no %s; `make services` installs it", pattern)
	}
	return found[len(found)-1], nil
}
