package cluster

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/goroutines"
)

// abandon tells a child process of these tests to make a cluster, say where, and wait to be killed.
const abandon = "POSTHASTE_CLUSTER_ABANDON"

func TestMain(m *testing.M) {
	if os.Getenv(abandon) != "" {
		c, err := New(context.Background(), Config{})
		if err != nil {
			panic(err)
		}
		_, _ = os.Stdout.WriteString(c.folder + "\n")
		select {}
	}
	os.Exit(goroutines.Run(m))
}

func start(t *testing.T, config Config) *Cluster {
	t.Helper()
	c, err := New(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { closed(t, c) })
	return c
}

// closed closes the cluster and looks for what is left of it.
func closed(t *testing.T, c *Cluster) {
	t.Helper()
	if err := c.Close(); err != nil {
		t.Error(err)
	}
	if pids, err := c.processes(); err != nil || len(pids) > 0 {
		t.Errorf("processes of the cluster still run: %v, %v", pids, err)
	}
	if _, err := os.Stat(c.folder); !os.IsNotExist(err) {
		t.Errorf("the folder is still there: %v", err)
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (c *Cluster) want(t *testing.T, want, query string) {
	t.Helper()
	got, err := c.Text(t.Context(), query)
	if err != nil || got != want {
		t.Errorf("%s: %q, %v, want %q", query, got, err, want)
	}
}

// TestLives: what was committed is there after each way to end a server, on both versions.
func TestLives(t *testing.T) {
	t.Parallel()
	for _, major := range []int{15, 18} {
		t.Run(strconv.Itoa(major), func(t *testing.T) {
			t.Parallel()
			c := start(t, Config{
				Major: major, Settings: map[string]string{"wal_writer_delay": "10s"}, Environment: []string{"PGAPPNAME=unused"},
			})
			c.want(t, strconv.Itoa(major), "current_setting('server_version_num')::int / 10000")
			c.want(t, "10s", "current_setting('wal_writer_delay')")
			must(t, c.Exec(t.Context(), "CREATE TABLE t (n int)"))
			must(t, c.Exec(t.Context(), "INSERT INTO t VALUES (1)"))
			must(t, c.Restart(t.Context(), Fast))
			c.want(t, "1", "SELECT count(*) FROM t")
			must(t, c.Restart(t.Context(), Immediate))
			c.want(t, "1", "SELECT count(*) FROM t")
			must(t, c.Kill(t.Context()))
			if pids, err := c.processes(); err != nil || len(pids) > 0 {
				t.Errorf("killed, and %v run, %v", pids, err)
			}
			must(t, c.Start(t.Context()))
			c.want(t, "1", "SELECT count(*) FROM t")
			must(t, c.Set(t.Context(), "work_mem", "7MB"))
			c.want(t, "7MB", "current_setting('work_mem')")
			if err := c.Start(t.Context()); err == nil {
				t.Error("it was started twice")
			}
		})
	}
}

// TestKilledServerForgets: a commit that nobody waited for is lost with the server. Without this, no test can
// show what a barrier is for.
func TestKilledServerForgets(t *testing.T) {
	t.Parallel()
	// Nobody else writes the log meanwhile, however long that is.
	c := start(t,
		Config{Settings: map[string]string{"autovacuum": "off", "bgwriter_lru_maxpages": "0", "checkpoint_timeout": "1h"}})
	must(t, c.Exec(t.Context(), "CREATE TABLE t (n int)"))
	must(t, c.Exec(t.Context(), "CHECKPOINT"))
	writer, err := c.Text(t.Context(), "SELECT pid FROM pg_stat_activity WHERE backend_type = 'walwriter'")
	must(t, err)
	pid, err := strconv.Atoi(writer)
	must(t, err)
	must(t, syscall.Kill(pid, syscall.SIGSTOP)) // it ends with the others all the same
	must(t, c.Exec(t.Context(), "SET synchronous_commit = off; INSERT INTO t VALUES (1)"))
	c.want(t, "1", "SELECT count(*) FROM t")
	must(t, c.Kill(t.Context()))
	must(t, c.Start(t.Context()))
	c.want(t, "0", "SELECT count(*) FROM t")
}

// TestAServerThatDoesNotStop names the process that it waits for, and can be killed and started again.
func TestAServerThatDoesNotStop(t *testing.T) {
	t.Parallel()
	c := start(t, Config{})
	conn, err := pgx.Connect(t.Context(), c.URL())
	must(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	pid := int(conn.PgConn().PID())
	must(t, syscall.Kill(pid, syscall.SIGSTOP))
	stopping, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	err = c.Stop(stopping, Fast)
	if !errors.Is(err, ErrNotStopped) || !strings.Contains(err.Error(), strconv.Itoa(pid)+" postgres: ") {
		t.Errorf("stopped: %v", err)
	}
	must(t, c.Kill(t.Context()))
	must(t, c.Start(t.Context()))
}

// TestAKilledSession: the server recovers by itself, its start is the same, and what is prepared outlives it.
func TestAKilledSession(t *testing.T) {
	t.Parallel()
	c := start(t, Config{})
	must(t, c.Exec(t.Context(), "CREATE TABLE notes (n int)"))
	conn, err := pgx.Connect(t.Context(), c.URL())
	must(t, err)
	defer func() { _ = conn.Close(context.WithoutCancel(t.Context())) }()
	for _, statement := range []string{"BEGIN", "INSERT INTO notes VALUES (1)", "PREPARE TRANSACTION 'left'"} {
		_, err := conn.Exec(t.Context(), statement)
		must(t, err)
	}
	started, err := c.Text(t.Context(), "pg_postmaster_start_time()")
	must(t, err)
	pid := int(conn.PgConn().PID())
	must(t, c.KillBackend(t.Context(), pid))
	c.want(t, started, "pg_postmaster_start_time()")
	must(t, c.Exec(t.Context(), "COMMIT PREPARED 'left'"))
	c.want(t, "1", "SELECT count(*) FROM notes")
	if err := c.KillBackend(t.Context(), pid); !errors.Is(err, os.ErrProcessDone) {
		t.Errorf("killed again: %v", err)
	}
}

// TestABadSettingIsTold: a server that does not start says why, and leaves nothing behind.
func TestABadSettingIsTold(t *testing.T) {
	t.Parallel()
	_, err := New(t.Context(), Config{Settings: map[string]string{"shared_buffers": "none"}})
	if err == nil || !strings.Contains(err.Error(), "shared_buffers") {
		t.Errorf("got %v", err)
	}
}

// TestStandby: a synchronous standby has every commit, a detached one has no more of them, and promoted it
// takes writes on another timeline.
func TestStandby(t *testing.T) {
	t.Parallel()
	primary := start(t, Config{})
	must(t, primary.Exec(t.Context(), "CREATE TABLE t (n int)"))
	standby, err := primary.Standby(t.Context(), "second")
	must(t, err)
	t.Cleanup(func() { closed(t, standby) })
	must(t, primary.Set(t.Context(), "synchronous_standby_names", "second"))
	must(t, eventually.Within(t.Context(), eventually.Patience, "the standby is synchronous", func() (bool, error) {
		state, err := primary.Text(t.Context(), "SELECT sync_state FROM pg_stat_replication")
		return state == "sync", err
	}))
	standby.want(t, "true", "pg_is_in_recovery()")
	must(t, primary.Exec(t.Context(), "SET synchronous_commit = remote_apply; INSERT INTO t VALUES (1)"))
	standby.want(t, "1", "SELECT count(*) FROM t")

	must(t, primary.Set(t.Context(), "synchronous_standby_names", ""))
	must(t, standby.Detach(t.Context()))
	must(t, primary.Exec(t.Context(), "INSERT INTO t VALUES (2)"))
	must(t, primary.Kill(t.Context()))
	must(t, standby.Promote(t.Context()))
	standby.want(t, "1", "SELECT count(*) FROM t")
	must(t, standby.Exec(t.Context(), "INSERT INTO t VALUES (3)"))
	standby.want(t, "00000002", "left(pg_walfile_name(pg_current_wal_lsn()), 8)")
}

// TestRestore: a restored cluster has what was there at the point and nothing later, on another timeline.
func TestRestore(t *testing.T) {
	t.Parallel()
	c := start(t, Config{Archive: true})
	must(t, c.Exec(t.Context(), "CREATE TABLE t (n int)"))
	backup, err := c.Backup(t.Context())
	must(t, err)
	must(t, c.Exec(t.Context(), "INSERT INTO t VALUES (1)"))
	must(t, c.Point(t.Context(), "here"))
	must(t, c.Exec(t.Context(), "INSERT INTO t VALUES (2)"))
	restored, err := backup.Restore(t.Context(), "here")
	must(t, err)
	t.Cleanup(func() { closed(t, restored) })
	restored.want(t, "1", "SELECT count(*) FROM t")
	must(t, restored.Exec(t.Context(), "INSERT INTO t VALUES (3)"))
	c.want(t, "2", "SELECT count(*) FROM t")
	identifier, err := c.Text(t.Context(), "SELECT system_identifier FROM pg_control_system()")
	must(t, err)
	restored.want(t, identifier, "SELECT system_identifier FROM pg_control_system()")
	if _, err := restored.Backup(t.Context()); err == nil {
		t.Error("a backup was made without an archive")
	}
}

// TestNothingIsLeftOfAKilledTest: the test's process dies without a word, and the cluster goes after it.
func TestNothingIsLeftOfAKilledTest(t *testing.T) {
	t.Parallel()
	command := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^$")
	command.Env = append(os.Environ(), abandon+"=1")
	command.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	output, err := command.StdoutPipe()
	must(t, err)
	must(t, command.Start())
	defer time.AfterFunc(eventually.Patience, func() { _ = command.Process.Kill() }).Stop() // which ends its output
	text := make([]byte, 256)
	n, err := output.Read(text)
	must(t, err)
	folder := strings.TrimSpace(string(text[:n]))
	c := &Cluster{folder: folder}
	if pids, err := c.processes(); err != nil || len(pids) == 0 {
		t.Fatalf("there is no cluster in %q to leave behind: %v", folder, err)
	}
	segment := segmentOf(t, c)
	must(t, syscall.Kill(command.Process.Pid, syscall.SIGKILL))
	_ = command.Wait()
	must(t, eventually.Within(t.Context(), eventually.Patience, "the folder is gone", func() (bool, error) {
		_, err := os.Stat(folder)
		return os.IsNotExist(err), nil
	}))
	if pids, err := c.processes(); err != nil || len(pids) > 0 {
		t.Errorf("processes of the cluster still run: %v, %v", pids, err)
	}
	segments, err := os.ReadFile("/proc/sysvipc/shm")
	must(t, err)
	for line := range strings.Lines(string(segments)) {
		if fields := strings.Fields(line); len(fields) > 1 && fields[1] == segment {
			t.Errorf("the shared memory is still there: %s", line)
		}
	}
}

// segmentOf is the id of the server's shared memory.
func segmentOf(t *testing.T, c *Cluster) string {
	t.Helper()
	file, err := os.ReadFile(filepath.Join(c.data(), "postmaster.pid"))
	must(t, err)
	return strings.Fields(strings.Split(string(file), "\n")[6])[1]
}

// TestACrashIsTold: an end that nobody asked for is told, and one that somebody did is not.
func TestACrashIsTold(t *testing.T) {
	t.Parallel()
	crashes := make(chan error, 10)
	c := start(t, Config{Crashed: func(how error) { crashes <- how }})
	must(t, c.Restart(t.Context(), Fast))
	must(t, c.Restart(t.Context(), Immediate))
	must(t, c.Kill(t.Context()))
	must(t, c.Start(t.Context()))
	if len(crashes) > 0 {
		t.Fatalf("it was stopped, and that counts as a crash: %v", <-crashes)
	}
	must(t, c.server.process.Kill())
	how := eventually.Receive(t, "somebody is told", crashes)
	if !strings.Contains(how.Error(), "PostgreSQL ended by itself (signal: killed)") ||
		!strings.Contains(how.Error(), "ready to accept connections") {
		t.Errorf("it is told as %q", how)
	}
}
