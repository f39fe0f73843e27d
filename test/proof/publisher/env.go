package publisher

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/posthaste-dev/posthaste/daemon/registryfile"
	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/internal/wait"
	"github.com/posthaste-dev/posthaste/test/kit/cluster"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/server"
	"github.com/posthaste-dev/posthaste/test/proof/chaos"
)

// project is the Google Cloud project of the emulators.
const project = "proof"

// env is an outbox with its producers and its checker: all that a run needs besides servers and publishers.
type env struct {
	folder    string
	postgres  string
	torture   *torture.Env
	producers *torture.Producers
	faults    *check.Writer
	files     []*os.File
	// registry is the file of contracts for the publishers.
	registry string
}

// newEnv makes an env on these servers, and producers that stand broken connections.
func newEnv(ctx context.Context, folder, postgres, broker string, aggregates int) (_ *env, err error) {
	s := &env{folder: folder, postgres: postgres, registry: filepath.Join(folder, "registry.yaml")}
	defer func() {
		if err != nil {
			err = errors.Join(err, s.close())
		}
	}()
	var histories [2]*check.Writer
	for i, name := range []string{torture.ProducersFile, torture.FaultsFile} {
		file, err := os.Create(filepath.Join(folder, name))
		if err != nil {
			return nil, fmt.Errorf("publisher: %w", err)
		}
		s.files, histories[i] = append(s.files, file), check.NewWriter(file)
	}
	s.faults = histories[1]
	if s.torture, err = torture.NewEnv(ctx, postgres, broker); err != nil {
		return nil, err
	}
	contracts, err := s.torture.Registry()
	if err != nil {
		return nil, err
	}
	text, err := registryfile.Export(contracts)
	if err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	if err := os.WriteFile(s.registry, text, 0o600); err != nil {
		return nil, fmt.Errorf("publisher: %w", err)
	}
	plan := torture.Plan{Postgres: postgres, Producers: 8, Aggregates: aggregates, Seed: 1, Unsteady: true}
	s.producers, err = s.torture.NewProducers(ctx, plan, histories[0])
	return s, err
}

// examine ends the histories and has them checked.
func (s *env) examine(ctx context.Context, drained bool, floor check.Floor) (*check.Verdict, error) {
	topics := s.torture.Pipelined()
	if err := s.faults.Add(check.Record{
		End: &check.End{Drained: drained, Dumped: true, Held: true, Pipelined: topics, Doubtful: topics},
	}); err != nil {
		return nil, err
	}
	s.torture.Pool.Reset() // its connections may be from before a restart
	if _, err := s.torture.Collect(ctx, s.folder); err != nil {
		return nil, err
	}
	return torture.Check(s.folder, floor, func(key string) (bool, error) { return s.torture.Committed(ctx, key) })
}

// count counts rows, also while the database's connections break.
func (s *env) count(ctx context.Context, query string, args ...any) (n int, err error) {
	err = eventually.Within(ctx, eventually.Patience, "the database answers", func() (bool, error) {
		err := s.torture.Pool.QueryRow(ctx, s.torture.SQL(query), args...).Scan(&n)
		return err == nil, err
	})
	return n, err
}

// open are the events that wait to be published.
func (s *env) open(ctx context.Context) (int, error) {
	return s.count(ctx, "SELECT count(*) FROM {schema}.outbox_events WHERE state IN (0, 1)")
}

// drain waits until nothing is open, and tells whether that happened. It ends also when nobody is left to publish, and
// when nothing has moved for as long as the patience lasts.
func (s *env) drain(ctx context.Context, patience time.Duration, alive func() bool) (bool, error) {
	for last, moved := -1, time.Now(); ; {
		open, err := s.open(ctx)
		if err != nil || open == 0 {
			return open == 0, err
		}
		if open != last {
			last, moved = open, time.Now()
		}
		if time.Since(moved) > patience || !alive() {
			return false, nil
		}
		if err := wait.For(ctx, 100*time.Millisecond); err != nil {
			return false, err
		}
	}
}

// underLoad has the producers write at a rate until the function is called. The context ends with their error.
func (s *env) underLoad(ctx context.Context, rate int) (context.Context, func()) {
	return s.meanwhile(ctx, func(ctx context.Context) error { return s.producers.Write(ctx, rate, time.Second) })
}

// withWork has the producers write whenever fewer events wait than these, until the function is called: however slow
// the machine is, there is always something to publish.
func (s *env) withWork(ctx context.Context, least int) (context.Context, func()) {
	return s.meanwhile(ctx, func(ctx context.Context) error {
		open, err := s.open(ctx)
		if err == nil && open < least {
			err = s.producers.Write(ctx, least-open, 0)
		}
		return errors.Join(err, wait.For(ctx, 50*time.Millisecond))
	})
}

// meanwhile does it again and again until the function is called. The context ends with its error.
func (s *env) meanwhile(ctx context.Context, do func(context.Context) error) (context.Context, func()) {
	ctx, fail := context.WithCancelCause(ctx)
	loading, enough := context.WithCancel(ctx)
	loaded := make(chan struct{})
	go func() {
		defer close(loaded)
		for loading.Err() == nil {
			if err := do(ctx); err != nil {
				fail(err)
				return
			}
		}
	}()
	return ctx, func() {
		enough()
		<-loaded
		fail(nil)
	}
}

func (s *env) close() error {
	if s.producers != nil {
		s.producers.Close()
	}
	for _, file := range s.files {
		_ = file.Close() // all lines are written at once
	}
	if s.torture != nil {
		return s.torture.Close()
	}
	return nil
}

// ownServers is servers of the proof's own with an env on them.
type ownServers struct {
	*env
	database *cluster.Cluster
	broker   *server.Server
	settings []string // of the publisher, as environment variables
}

// newOwnServers starts the servers of the half of a broker.
func newOwnServers(ctx context.Context, folder, broker, executable string) (_ *ownServers, err error) {
	h := &ownServers{}
	defer func() {
		if err != nil {
			err = errors.Join(err, h.close())
		}
	}()
	if h.database, err = cluster.New(ctx, cluster.Config{Major: 18}); err != nil {
		return nil, err
	}
	var address string
	if broker == chaos.PubSub {
		if h.broker, _, err = server.NewEmulator(folder, executable); err != nil {
			return nil, err
		}
		address = "pubsub://" + project + "?emulator=" + h.broker.Address
		h.settings = []string{
			"POSTHASTE_BROKER=pubsub", "POSTHASTE_PUBSUB_PROJECT=" + project, "POSTHASTE_PUBSUB_ENDPOINT=" + h.broker.Address,
		}
	} else {
		if h.broker, err = server.NewNATS(folder); err != nil {
			return nil, err
		}
		address = "nats://" + h.broker.Address
		h.settings = []string{"POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL=" + address}
	}
	if err := h.broker.Start(ctx); err != nil {
		return nil, err
	}
	if h.env, err = newEnv(ctx, folder, h.database.URL(), address, 500); err != nil {
		return nil, err
	}
	h.settings = append(h.settings, settings(h.env)...)
	return h, nil
}

// settings are those of a publisher of the stage, but for its broker.
func settings(s *env) []string {
	return []string{
		"POSTHASTE_DATABASE_URL=" + s.postgres, "POSTHASTE_DATABASE_SCHEMA=" + s.torture.Run,
		"POSTHASTE_REGISTRY_FILE=" + s.registry,
		"POSTHASTE_HTTP_LISTEN=127.0.0.1:0", "POSTHASTE_LOG_SAMPLE_SUCCESSES=1000", "HOME=" + s.folder,
	}
}

func (h *ownServers) close() error {
	var problems []error
	if h.env != nil {
		problems = append(problems, h.env.close())
	}
	h.broker.Close()
	if h.database != nil {
		problems = append(problems, h.database.Close())
	}
	return errors.Join(problems...)
}
