package chaos

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/posthaste-dev/posthaste/internal/torture/proxy"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/server"
)

// application is the application_name of producers and relays.
const application = "chaos"

// servers is an env: everything that a half of the proof runs on.
type servers struct {
	folder   string
	database *cluster.Cluster
	pooler   *server.Server
	broker   *server.Server
	// brokerURL leads straight to the broker.
	brokerURL string
	// faultPort is the emulator's, for Pub/Sub.
	faultPort string

	// The ways: of producers and relays to the pooler, of relays to the database, and to the broker.
	toPooler, toPoolerToo, toDatabase, toBroker *proxy.Proxy

	// turn is for who stops the database: one at a time.
	turn sync.Mutex

	// fail ends the half when a server ended that no fault has ended.
	fail context.CancelCauseFunc
	say  io.Writer
	// How often they ended by themselves.
	poolerCrashes, brokerCrashes atomic.Int64
}

// mostPoolerCrashes is how often the pooler may end by itself in a half. It has assertions that many faults at once can
// break. One that ends more often has settings that are wrong.
const mostPoolerCrashes = 5

// poolerCrashed lets the pooler be started again at once. The fault that restarts it waits for the producers, who wait
// for the relays, who wait for the pooler.
func (s *servers) poolerCrashed(how error) (again bool) {
	crashes := s.poolerCrashes.Add(1)
	_, _ = fmt.Fprintf(s.say, "crash %d of the pooler: %v\n", crashes, how) // the last line tells
	if crashes > mostPoolerCrashes {
		s.fail(fmt.Errorf("chaos: the pooler ended by itself more than %d times: look at its settings: %w",
			mostPoolerCrashes, how))
		return false
	}
	return true
}

// brokerCrashed ends the half: what the broker had promised may be gone, and no fault explains it. It is started again
// once, because whoever takes the run's topics away would wait for it for minutes.
func (s *servers) brokerCrashed(how error) (again bool) {
	s.databaseCrashed(how)
	return s.brokerCrashes.Add(1) == 1
}

func (s *servers) databaseCrashed(how error) {
	s.fail(fmt.Errorf("chaos: no fault has ended this server: %w", how))
}

// faketime finds the library that sets a process's clock off.
func faketime() (string, error) {
	found, err := filepath.Glob("/usr/lib/*/faketime/libfaketime.so.1")
	if err != nil || len(found) == 0 {
		return "", errors.New("chaos: there is no libfaketime; `make services` installs it, and so does: apt-get install " +
			"faketime")
	}
	return found[0], nil
}

// newServers starts the servers for the half of a broker. Fail ends the context of the half.
func newServers(ctx context.Context, plan Plan, broker string, fail context.CancelCauseFunc,
	say io.Writer,
) (_ *servers, err error) {
	s := &servers{folder: filepath.Join(plan.Folder, broker), fail: fail, say: say}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	if err := os.MkdirAll(s.folder, 0o700); err != nil {
		return nil, fmt.Errorf("chaos: %w", err)
	}
	library, err := faketime()
	if err != nil {
		return nil, err
	}
	s.database, err = cluster.New(ctx, cluster.Config{Major: 18, Crashed: s.databaseCrashed, Environment: []string{
		"LD_PRELOAD=" + library, fmt.Sprintf("FAKETIME=%+ds", int(clocks[broker].Seconds())),
		"FAKETIME_DONT_FAKE_MONOTONIC=1", "FAKETIME_DONT_RESET=1",
	}})
	if err != nil {
		return nil, err
	}
	if s.pooler, err = server.NewPooler(s.folder, "127.0.0.1:"+strconv.Itoa(s.database.Port())); err != nil {
		return nil, err
	}
	s.pooler.Crashed = s.poolerCrashed
	if err := s.pooler.Start(ctx); err != nil {
		return nil, err
	}
	switch broker {
	case NATS:
		err = s.startNATS(ctx)
	case PubSub:
		err = s.startEmulator(ctx, plan.Executable)
	default:
		err = fmt.Errorf("chaos: there is no broker called %q", broker)
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
	}{
		{&s.toPooler, s.pooler.Address},
		{&s.toPoolerToo, s.pooler.Address},
		{&s.toDatabase, database},
		{&s.toBroker, s.broker.Address},
	} {
		if *way.proxy, err = proxy.Listen(way.to); err != nil {
			return err
		}
	}
	return nil
}

// through is the database by way of a proxy in front of it, or of the pooler.
func (s *servers) through(way *proxy.Proxy, pooled bool) string {
	address := "postgres://postgres@" + way.Addr() + "/postgres?sslmode=disable&connect_timeout=5&application_name=" +
		application
	if pooled {
		address += "&default_query_exec_mode=exec"
	}
	return address
}

// brokerThrough is the broker by way of its proxy.
func (s *servers) brokerThrough() string {
	return strings.Replace(s.brokerURL, s.broker.Address, s.toBroker.Addr(), 1)
}

// startNATS starts a NATS server whose streams survive its death.
func (s *servers) startNATS(ctx context.Context) (err error) {
	if s.broker, err = server.NewNATS(s.folder); err != nil {
		return err
	}
	s.brokerURL, s.broker.Crashed = "nats://"+s.broker.Address, s.brokerCrashed
	return s.broker.Start(ctx)
}

// startEmulator starts our Pub/Sub emulator, whose journal survives its death.
func (s *servers) startEmulator(ctx context.Context, executable string) (err error) {
	if s.broker, s.faultPort, err = server.NewEmulator(s.folder, executable); err != nil {
		return err
	}
	s.brokerURL, s.broker.Crashed = "pubsub://chaos?emulator="+s.broker.Address, s.brokerCrashed
	return s.broker.Start(ctx)
}

// close ends everything. The folder stays: it has the logs.
func (s *servers) close() error {
	for _, way := range []*proxy.Proxy{s.toPooler, s.toPoolerToo, s.toDatabase, s.toBroker} {
		if way != nil {
			way.Close()
		}
	}
	s.pooler.Close()
	s.broker.Close()
	if s.database == nil {
		return nil
	}
	return s.database.Close()
}
