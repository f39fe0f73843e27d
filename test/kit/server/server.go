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
	"sync"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/port"
)

// Server is a program that listens.
type Server struct {
	Name    string
	Address string // host:port
	Log     string // a file
	Program string
	Args    []string
	User    *syscall.Credential // nil: whoever starts it
	// Crashed is told when the server has ended and nobody called End: how, and the end of its log. It answers whether the
	// server is started again; one that cannot be is a crash as well. It is set before the first Start and must not call
	// the server's methods. Nil: nobody looks.
	Crashed func(how error) (again bool)

	// mutex is held for a whole Start or End, so that nobody starts what somebody else is starting or ending.
	mutex    sync.Mutex
	runs     *process // nil: nobody wants it to run
	watchers sync.WaitGroup
	folder   string // goes with Close
}

// process is one life of a server.
type process struct {
	command *exec.Cmd
	ended   chan struct{}
}

// Start starts the server and returns when it answers.
func (s *Server) Start(ctx context.Context) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.noticed(); s.runs != nil {
		return fmt.Errorf("server: %s runs already: end it first", s.Name)
	}
	return s.start(ctx)
}

func (s *Server) start(ctx context.Context) error {
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
	p := &process{command: command, ended: make(chan struct{})}
	go func() {
		defer close(p.ended)
		_ = command.Wait() // its state tells
	}()
	if err := s.answers(ctx, p); err != nil {
		_ = command.Process.Kill() // it may have ended
		<-p.ended
		return err
	}
	s.runs = p
	if s.Crashed != nil {
		s.watchers.Go(func() { s.watch(context.WithoutCancel(ctx), p) })
	}
	return nil
}

func (s *Server) answers(ctx context.Context, p *process) error {
	return eventually.Within(ctx, eventually.Patience, s.Name+" answers", func() (bool, error) {
		select {
		case <-p.ended:
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

// watch waits for the end of a life. Whoever calls End or Start before it has its turn has noticed a crash already.
func (s *Server) watch(ctx context.Context, p *process) {
	<-p.ended
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.runs != p {
		return
	}
	for again := s.noticed(); again; {
		err := s.start(ctx)
		again = err != nil && s.Crashed(err)
	}
}

// noticed tells of a crash that nobody has told of yet, and answers whether there was one after which the server is
// started again.
func (s *Server) noticed() (again bool) {
	if s.runs == nil {
		return false
	}
	select {
	case <-s.runs.ended:
	default:
		return false
	}
	how := s.runs.command.ProcessState
	s.runs = nil
	return s.Crashed != nil &&
		s.Crashed(fmt.Errorf("server: %s ended by itself (%s); the end of its log:\n%s", s.Name, how, lastWords(s.Log)))
}

// End ends the server by a signal and returns when it is gone. It stays so until Start.
func (s *Server) End(signal os.Signal) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.noticed(); s.runs == nil {
		return nil
	}
	if err := s.runs.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("server: end %s: %w", s.Name, err)
	}
	select {
	case <-s.runs.ended:
		s.runs = nil
		return nil
	case <-time.After(eventually.Patience):
		return fmt.Errorf("server: %s has not ended within %s of a signal: %s", s.Name, eventually.Patience, signal)
	}
}

// Signal sends a signal that does not end the server.
func (s *Server) Signal(signal os.Signal) error {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.runs == nil {
		return fmt.Errorf("server: %s does not run", s.Name)
	}
	if err := s.runs.command.Process.Signal(signal); err != nil {
		return fmt.Errorf("server: %s for %s: %w", signal, s.Name, err)
	}
	return nil
}

// Pid is the number of the server's process; 0: it does not run.
func (s *Server) Pid() int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.runs == nil {
		return 0
	}
	return s.runs.command.Process.Pid
}

// Close ends whatever runs.
func (s *Server) Close() {
	if s == nil {
		return
	}
	_ = s.End(os.Kill)
	s.watchers.Wait()
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
	about, err := file.Stat()
	if err != nil {
		return err.Error()
	}
	text, err := io.ReadAll(io.NewSectionReader(file, max(0, about.Size()-1000), 1000))
	if err != nil {
		return err.Error()
	}
	return string(text)
}

// FreeAddress is one on which nobody listens, and that no other process of ours is given; see [port.Free].
func FreeAddress() (string, error) { return port.Address() }
