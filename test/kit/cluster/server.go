package cluster

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
)

// Mode is how a server is stopped.
type Mode syscall.Signal

// The modes.
const (
	Fast      = Mode(syscall.SIGINT)  // clients are cut off, everything is written
	Immediate = Mode(syscall.SIGQUIT) // as in a crash: the next start recovers from the log
)

// server is the postmaster.
type server struct {
	process *os.Process
	exited  chan struct{}
	// asked tells that its end is wanted.
	asked atomic.Bool
}

// Start starts the server and returns when it answers.
func (c *Cluster) Start(ctx context.Context) error {
	if c.server != nil {
		return errors.New("cluster: it runs already")
	}
	log, err := os.OpenFile(c.logFile(), os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o600)
	if err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	defer log.Close() // the server has its own
	// It shall outlive the context of whoever started it: Stop, Kill and Close end it.
	command := c.command(context.WithoutCancel(ctx), "postgres", "-D", c.data())
	command.Stdout, command.Stderr = log, log
	command.Env = append(command.Env, c.config.Environment...)
	if err := command.Start(); err != nil {
		return fmt.Errorf("cluster: %w", err)
	}
	s := &server{process: command.Process, exited: make(chan struct{})}
	c.server = s
	go func() {
		defer close(s.exited)
		_ = command.Wait() // its state tells
		if !s.asked.Load() && c.config.Crashed != nil {
			c.config.Crashed(fmt.Errorf("cluster: PostgreSQL ended by itself (%s); the end of its log:\n%s",
				command.ProcessState, c.Log()))
		}
	}()
	return eventually.Within(ctx, eventually.Patience, "the server answers", func() (bool, error) {
		select {
		case <-s.exited:
			c.server = nil
			return true, errors.New("cluster: the server ended while it started; its log: " + c.Log())
		default:
			return c.answers(ctx)
		}
	})
}

func (c *Cluster) answers(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, 30*time.Second) // one that hangs is asked again
	defer cancel()
	err := c.on(ctx, func(conn *pgx.Conn) error { return conn.Ping(ctx) })
	return err == nil, err
}

// Stop stops the server.
func (c *Cluster) Stop(ctx context.Context, mode Mode) error {
	if c.server == nil {
		return errors.New("cluster: it does not run")
	}
	c.server.asked.Store(true)
	if err := c.server.process.Signal(syscall.Signal(mode)); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("cluster: %w", err)
	}
	return c.gone(ctx)
}

// Kill ends every process of the server at once by SIGKILL: what was not written to the log is lost, as it
// would be when the machine stops.
func (c *Cluster) Kill(ctx context.Context) error {
	if c.server == nil {
		return errors.New("cluster: it does not run")
	}
	c.server.asked.Store(true)
	err := eventually.Within(ctx, eventually.Patience, "the server's processes are gone", func() (bool, error) {
		pids, err := c.processes()
		for _, pid := range pids {
			_ = syscall.Kill(pid, syscall.SIGKILL) // who is gone already is what we want
		}
		return len(pids) == 0, err
	})
	return errors.Join(err, c.gone(ctx))
}

// KillBackend ends the process of one session by SIGKILL, and returns when the server has ended all others, recovered
// from the log and answers again. The postmaster lives on. Where there is no such process it is os.ErrProcessDone, and
// where the server does not come back by itself ErrNotRecovered.
func (c *Cluster) KillBackend(ctx context.Context, pid int) error {
	pids, err := c.processes()
	if err != nil {
		return err
	}
	if c.server == nil || pid == c.server.process.Pid || !slices.Contains(pids, pid) {
		return fmt.Errorf("cluster: session %d: %w", pid, os.ErrProcessDone)
	}
	err = c.on(ctx, func(conn *pgx.Conn) error {
		if err := syscall.Kill(pid, syscall.SIGKILL); errors.Is(err, syscall.ESRCH) { // it has ended meanwhile
			return fmt.Errorf("cluster: session %d: %w", pid, os.ErrProcessDone)
		} else if err != nil {
			return err
		}
		return cutOff(ctx, conn)
	})
	if err != nil {
		return err
	}
	if err := eventually.Within(ctx, recovery, "the server has recovered",
		func() (bool, error) { return c.answers(ctx) }); err != nil {
		return errors.Join(ErrNotRecovered, err)
	}
	return nil
}

// cutOff returns when a session was ended, as all are when one was killed. A server that is stuck does not answer
// either.
func cutOff(ctx context.Context, conn *pgx.Conn) error {
	asking, cancel := context.WithTimeout(ctx, recovery)
	defer cancel()
	err := eventually.Within(asking, recovery, "the server notices", func() (bool, error) {
		return conn.Ping(asking) != nil, nil
	})
	if asking.Err() != nil {
		return errors.Join(ErrNotRecovered, asking.Err(), err)
	}
	return err
}

// recovery is how long a server may take to recover by itself, and to notice that it must.
const recovery = time.Minute

// ErrNotRecovered tells that a server did not come back after a session was killed. Whoever wants it back kills it, and
// starts it again.
var ErrNotRecovered = errors.New("cluster: the server has not recovered by itself")

// ErrNotStopped tells that a server did not end when it was told to. Whoever wants its end kills it.
var ErrNotStopped = errors.New("cluster: the server has not ended")

// left says what each process of the server is, and what it waits for.
func (c *Cluster) left() string {
	pids, err := c.processes()
	if err != nil {
		return err.Error()
	}
	var text strings.Builder
	for _, pid := range pids {
		of := func(name string) string {
			text, _ := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), name)) // one that is gone waits for nothing
			return strings.TrimSpace(strings.ReplaceAll(string(text), "\x00", " "))
		}
		fmt.Fprintf(&text, "%d %s: waits in %s, system call %s\n", pid, of("cmdline"), of("wchan"), of("syscall"))
	}
	return text.String() + "the end of its log:\n" + c.Log()
}

// gone waits for the postmaster's end.
func (c *Cluster) gone(ctx context.Context) error {
	select {
	case <-c.server.exited:
		c.server = nil
		return nil
	case <-time.After(eventually.Patience):
		return fmt.Errorf("%w within %s; what is left of it:\n%s", ErrNotStopped, eventually.Patience, c.left())
	case <-ctx.Done():
		return fmt.Errorf("%w: %w; what is left of it:\n%s", ErrNotStopped, ctx.Err(), c.left())
	}
}

// processes are those that work in the data folder: all of the server's do, and nobody else.
func (c *Cluster) processes() ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("cluster: %w", err)
	}
	var pids []int
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if folder, err := os.Readlink(filepath.Join("/proc", entry.Name(), "cwd")); err == nil && folder == c.data() {
			pids = append(pids, pid)
		}
	}
	return pids, nil
}

// Restart stops the server and starts it again.
func (c *Cluster) Restart(ctx context.Context, mode Mode) error {
	if err := c.Stop(ctx, mode); err != nil {
		return err
	}
	return c.Start(ctx)
}

// Close ends the server, whatever it does, and takes its folder away.
func (c *Cluster) Close() error {
	if c.server != nil {
		ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		_ = c.Stop(ctx, Immediate) // the keeper ends whom this did not
	}
	err := c.keeper.close()
	if c.server != nil {
		<-c.server.exited
		c.server = nil
	}
	return err
}

func (c *Cluster) logFile() string { return filepath.Join(c.folder, "log") }

// Log is the end of what the server wrote.
func (c *Cluster) Log() string {
	text, err := os.ReadFile(c.logFile())
	if err != nil {
		return err.Error()
	}
	return string(text[max(0, len(text)-4096):])
}

// Run runs another program of this PostgreSQL (pg_dump, psql) against the cluster and returns what it said.
func (c *Cluster) Run(ctx context.Context, program string, args ...string) (string, error) {
	command := c.command(ctx, program, args...)
	command.Env = append(command.Env, "PGHOST=127.0.0.1", "PGPORT="+strconv.Itoa(c.port), "PGUSER=postgres",
		"PGDATABASE=postgres")
	var said, problems bytes.Buffer
	command.Stdout, command.Stderr = &said, &problems
	if err := command.Run(); err != nil {
		return said.String(), fmt.Errorf("cluster: %s: %w: %s", program, err, problems.String())
	}
	return said.String(), nil
}

func (c *Cluster) run(ctx context.Context, program string, args ...string) error {
	_, err := c.Run(ctx, program, args...)
	return err
}

// command prepares a program as the server's user, with an environment that is the same for everybody.
func (c *Cluster) command(ctx context.Context, program string, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, filepath.Join(c.programs, program), args...)
	command.Dir = c.folder
	command.Env = []string{"PATH=" + os.Getenv("PATH"), "HOME=" + c.folder, "LANG=C.UTF-8", "TZ=UTC"}
	// A group of its own: a Ctrl-C at the terminal is for the test, which then ends the server.
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Credential: serviceUser()}
	return command
}

// serviceUser is whom the servers run as; nil: as whoever runs the test.
var serviceUser = sync.OnceValue(func() *syscall.Credential {
	if os.Geteuid() != 0 {
		return nil
	}
	account, err := user.Lookup("posthaste")
	if err != nil {
		return nil // PostgreSQL will say that it does not run as root
	}
	uid, _ := strconv.ParseUint(account.Uid, 10, 32)
	gid, _ := strconv.ParseUint(account.Gid, 10, 32)
	return &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}
})

// programs is the folder of a version's programs, as `make services` installs them.
func programs(major int) (string, error) {
	patterns := []string{
		fmt.Sprintf("/usr/lib/postgresql/%d/bin", major),
		filepath.Join(servicesFolder(), fmt.Sprintf("tools/postgres-%d*/native/bin", major)),
	}
	for _, pattern := range patterns {
		found, err := filepath.Glob(filepath.Join(pattern, "postgres"))
		if err == nil && len(found) > 0 {
			return filepath.Dir(found[len(found)-1]), nil
		}
	}
	return "", fmt.Errorf("cluster: there is no PostgreSQL %d here; `make services` installs it", major)
}

// servicesFolder is where services/lib.sh puts what it installs.
func servicesFolder() string {
	if folder := os.Getenv("POSTHASTE_SERVICES_DIR"); folder != "" {
		return folder
	}
	if os.Geteuid() == 0 {
		return "/var/tmp/posthaste-services"
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return ""
	}
	return filepath.Join(cache, "posthaste", "services")
}
