package chaos

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/posthaste-dev/posthaste/test/cluster"
	"github.com/posthaste-dev/posthaste/test/pubsubemulator"
	"github.com/posthaste-dev/posthaste/torture/proxy"
)

// application is the application_name of producers and relays.
const application = "chaos"

// servers is one house: everything that a half of the proof runs on.
type servers struct {
	folder   string
	database *cluster.Cluster
	pooler   *process
	broker   *process
	// brokerURL leads straight to the broker.
	brokerURL string
	// faultPort is the emulator's, for Pub/Sub.
	faultPort    string
	poolerFolder string

	// The ways: of producers and relays to the pooler, of relays to the database, and to the broker.
	toPooler, toPoolerToo, toDatabase, toBroker *proxy.Proxy

	// turn is for who stops the database: one at a time.
	turn sync.Mutex
}

// faketime finds the library that sets a process's clock off.
func faketime() (string, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		return "", errors.New("chaos: there is no libfaketime; `make services` installs it, and so does: apt-get install faketime")
	}
	return found[0], nil
}

// newServers starts a house whose database's clock is off by this much.
func newServers(ctx context.Context, folder, brokerKind, executable string, clockOff time.Duration) (_ *servers, err error) {
	s := &servers{folder: folder}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	library, err := faketime()
	if err != nil {
		return nil, err
	}
	s.database, err = cluster.New(ctx, cluster.Config{Major: 18, Environment: []string{
		"LD_PRELOAD=" + library, fmt.Sprintf("FAKETIME=%+ds", int(clockOff.Seconds())), "FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1",
	}})
	if err != nil {
		return nil, err
	}
	if err := s.startPooler(ctx); err != nil {
		return nil, err
	}
	switch brokerKind {
	case NATS:
		err = s.startNATS(ctx)
	case PubSub:
		err = s.startEmulator(ctx, executable)
	default:
		err = fmt.Errorf("chaos: there is no broker called %q", brokerKind)
	}
	if err != nil {
		return nil, err
	}
	return s, s.openWays()
}

func (s *servers) openWays() (err error) {
	database := "127.0.0.1:" + strconv.Itoa(s.database.Port())
	for _, way := range []struct {
		proxy **proxy.Proxy
		to    string
	}{{&s.toPooler, s.pooler.address}, {&s.toPoolerToo, s.pooler.address}, {&s.toDatabase, database}, {&s.toBroker, s.broker.address}} {
		if *way.proxy, err = proxy.Listen(way.to); err != nil {
			return err
		}
	}
	return nil
}

// through is the database by way of a proxy in front of it, or of the pooler.
func (s *servers) through(way *proxy.Proxy, pooled bool) string {
	address := "postgres://postgres@" + way.Addr() + "/postgres?sslmode=disable&connect_timeout=5&application_name=" + application
	if pooled {
		address += "&default_query_exec_mode=exec"
	}
	return address
}

// brokerThrough is the broker by way of its proxy.
func (s *servers) brokerThrough() string {
	return strings.Replace(s.brokerURL, s.broker.address, s.toBroker.Addr(), 1)
}

const poolerSettings = `[databases]
* = host=127.0.0.1 port=%d

[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = trust
auth_file = %s
pool_mode = transaction
default_pool_size = 40
max_client_conn = 500
server_login_retry = 1
query_wait_timeout = 10
server_check_delay = 0
ignore_startup_parameters = extra_float_digits
`

// startPooler starts a PgBouncer in transaction mode.
func (s *servers) startPooler(ctx context.Context) error {
	program, err := exec.LookPath("pgbouncer")
	if err != nil {
		program = "/usr/sbin/pgbouncer" // where a plain user's PATH does not look
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(address, ":")
	// Outside the histories, which only this user may read.
	folder, err := os.MkdirTemp("", "posthaste-pooler-")
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	s.poolerFolder = folder
	users, settings := filepath.Join(folder, "users.txt"), filepath.Join(folder, "pgbouncer.ini")
	text := fmt.Appendf(nil, poolerSettings, s.database.Port(), port, users)
	err = errors.Join(
		os.Chmod(folder, 0o755),
		os.WriteFile(users, []byte("\"postgres\" \"\"\n"), 0o644),
		os.WriteFile(settings, text, 0o644),
	)
	if err != nil {
		return fmt.Errorf("chaos: %w", err)
	}
	s.pooler = &process{
		name: "PgBouncer", address: address, log: filepath.Join(s.folder, "pgbouncer.log"), program: program, args: []string{settings}, user: serviceUser(),
	}
	return s.pooler.start(ctx)
}

// startNATS starts a NATS server whose streams survive its death.
func (s *servers) startNATS(ctx context.Context) error {
	program, err := tool("nats-server-*/nats-server")
	if err != nil {
		return err
	}
	address, err := freeAddress()
	if err != nil {
		return err
	}
	_, port, _ := strings.Cut(address, ":")
	s.brokerURL = "nats://" + address
	s.broker = &process{
		name: "nats-server", address: address, log: filepath.Join(s.folder, "nats.log"), program: program,
		args: []string{"--addr", "127.0.0.1", "--port", port, "--jetstream", "--store_dir", filepath.Join(s.folder, "nats")},
	}
	return s.broker.start(ctx)
}

// Emulator is the first argument with which the proof's program is to be a Pub/Sub emulator; see [RunEmulator].
const Emulator = "emulator"

// startEmulator starts our Pub/Sub emulator, whose journal survives its death.
func (s *servers) startEmulator(ctx context.Context, executable string) error {
	address, err := freeAddress()
	if err != nil {
		return err
	}
	if s.faultPort, err = freeAddress(); err != nil {
		return err
	}
	s.brokerURL = "pubsub://chaos?emulator=" + address
	s.broker = &process{
		name: "the Pub/Sub emulator", address: address, log: filepath.Join(s.folder, "emulator.log"), program: executable,
		args: []string{Emulator, address, s.faultPort, filepath.Join(s.folder, "emulator")},
	}
	return s.broker.start(ctx)
}

// RunEmulator is the emulator's process, until the context ends.
func RunEmulator(ctx context.Context, address, faultAddress, folder string) error {
	server, err := pubsubemulator.Start(pubsubemulator.Config{Addr: address, FaultAddr: faultAddress, Dir: folder})
	if err != nil {
		return err
	}
	<-ctx.Done()
	return server.Close()
}

// close ends everything. The folder stays: it has the logs.
func (s *servers) close() error {
	for _, way := range []*proxy.Proxy{s.toPooler, s.toPoolerToo, s.toDatabase, s.toBroker} {
		if way != nil {
			way.Close()
		}
	}
	for _, p := range []*process{s.pooler, s.broker} {
		if p != nil {
			p.close()
		}
	}
	if s.poolerFolder != "" {
		_ = os.RemoveAll(s.poolerFolder) // of no consequence
	}
	if s.database == nil {
		return nil
	}
	return s.database.Close()
}
