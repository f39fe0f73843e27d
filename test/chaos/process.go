package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"

	"github.com/posthaste-dev/posthaste/test/cluster"
)

// process is a server that can be killed and started again on the same port.
type process struct {
	name    string
	address string // host:port
	log     string
	program string
	args    []string
	user    *syscall.Credential
	command *exec.Cmd
	ended   chan struct{}
}

// start starts the server and returns when it answers.
func (p *process) start(ctx context.Context) error {
	log, err := os.OpenFile(p.log, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	defer log.Close()
	p.command = exec.Command(p.program, p.args...)
	p.command.Stdout, p.command.Stderr = log, log
	// A group of its own, so that a Ctrl-C is for the proof, and an end with the proof, however that ends.
	p.command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: p.user, Pdeathsig: syscall.SIGKILL}
	if err := p.command.Start(); err != nil {
		return fmt.Errorf("chaos: start %s: %w", p.name, err)
	}
	p.ended = make(chan struct{})
	go func() {
		defer close(p.ended)
		_ = p.command.Wait() // how it ended is in its log
	}()
	return cluster.Until(ctx, p.name+" answers", func() (bool, error) {
		select {
		case <-p.ended:
			return true, fmt.Errorf("chaos: %s ended while it started: %s", p.name, lastWords(p.log))
		default:
			err := dials(ctx, p.address)
			return err == nil, err
		}
	})
}

// end ends the server by a signal and returns when it is gone.
func (p *process) end(signal os.Signal) error {
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("chaos: end %s: %w", p.name, err)
	}
	<-p.ended
	return nil
}

// close ends whatever runs.
func (p *process) close() {
	if p.ended != nil {
		_ = p.end(os.Kill)
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

// dials tells whether somebody listens there.
func dials(ctx context.Context, address string) error {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	return conn.Close()
}

// freeAddress has a port below those that the system gives to outgoing connections: while a server is down, a client that tries
// one of those again and again gets connected to itself in the end.
func freeAddress() (string, error) {
	for range 100 {
		address := "127.0.0.1:" + strconv.Itoa(20_000+rand.IntN(12_000))
		listener, err := (&net.ListenConfig{}).Listen(context.Background(), "tcp", address)
		if err != nil {
			continue
		}
		return address, listener.Close()
	}
	return "", errors.New("chaos: there is no free port")
}

// serviceUser is whom servers run as that do not run as root.
func serviceUser() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("posthaste")
	if err != nil {
		return nil // the server will say that it does not run as root
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
}

// tool finds a program that `make services` has put into its folder.
func tool(pattern string) (string, error) {
	folder := os.Getenv("POSTHASTE_SERVICES_DIR")
	if folder == "" && os.Geteuid() == 0 {
		folder = "/var/tmp/posthaste-services"
	}
	if folder == "" {
		cache, err := os.UserCacheDir()
		if err != nil {
			return "", fmt.Errorf("chaos: %w", err)
		}
		folder = filepath.Join(cache, "posthaste", "services")
	}
	found, err := filepath.Glob(filepath.Join(folder, "tools", pattern))
	if err != nil || len(found) == 0 {
		return "", fmt.Errorf("chaos: there is no %s; `make services` installs it", pattern)
	}
	return found[len(found)-1], nil
}
