// Package server runs servers of a test's or proof's own, which it may end and start again on the same address.
package server

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/test/cluster"
	"github.com/posthaste-dev/posthaste/test/port"
)

// Server is a program that listens.
type Server struct {
	Name    string
	Address string // host:port
	Log     string // a file
	Program string
	Args    []string
	User    *syscall.Credential // nil: whoever starts it

	command *exec.Cmd
	ended   chan struct{}
	folder  string // goes with Close
}

// patience is for a server that starts or ends on a busy machine.
const patience = 3 * time.Minute

// Start starts the server and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	log, err := os.OpenFile(s.Log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("server: %w", err)
	}
	defer log.Close() // the server has its own
	command := exec.Command(s.Program, s.Args...)
	command.Stdout, command.Stderr = log, log
	// A group of its own, so that a Ctrl-C is for the proof, and an end with the proof, however that ends.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: s.User, Pdeathsig: syscall.SIGKILL}
	if err := command.Start(); err != nil {
		return fmt.Errorf("server: start %s: %w", s.Name, err)
	}
	ended := make(chan struct{})
	s.command, s.ended = command, ended
	go func() {
		defer close(ended)
		_ = command.Wait() // how it ended is in its log
	}()
	return cluster.Within(ctx, patience, s.Name+" answers", func() (bool, error) {
		select {
		case <-ended:
			return true, fmt.Errorf("server: %s ended while it started: %s", s.Name, lastWords(s.Log))
		default:
		}
		conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", s.Address)
		if err != nil {
			return false, fmt.Errorf("server: %w", err)
		}
		return true, conn.Close()
	})
}

// End ends the server by a signal and returns when it is gone.
func (s *Server) End(signal os.Signal) error {
	if err := s.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("server: end %s: %w", s.Name, err)
	}
	select {
	case <-s.ended:
		return nil
	case <-time.After(patience):
		return fmt.Errorf("server: %s has not ended within %s of a signal: %s", s.Name, patience, signal)
	}
}

// Close ends whatever runs.
func (s *Server) Close() {
	if s == nil {
		return
	}
	if s.ended != nil {
		_ = s.End(os.Kill)
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder) // of no consequence
	}
}

func lastWords(log string) string {
	file, err := os.Open(log)
	if err != nil {
		return err.Error()
	}
	defer file.Close()
	text, err := io.ReadAll(file)
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-1000):])
}

// FreeAddress is one on which nobody listens, and that no other process of ours is given; see [port.Free].
func FreeAddress() (string, error) { return port.Address() }
