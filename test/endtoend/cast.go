package endtoend

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/test/cluster"
	"github.com/posthaste-dev/posthaste/test/publisher"
)

// Kind is a kind of process.
type Kind string

// The kinds of processes of the marketplace.
const (
	API    Kind = "api"
	Relay  Kind = "relay"
	Worker Kind = "worker"
)

// Kinds are all of them, in the order in which they are killed.
var Kinds = []Kind{API, Relay, Worker}

// An actor is a process that is started again when it was killed.
type actor struct {
	kind        Kind
	name        string // of this one among all
	binary      string
	ready       *regexp.Regexp // what its log says when it works
	environment []string
	folder      string

	lives   int
	program *publisher.Program
}

// life names the present life, also to the database.
func (a *actor) life() string { return fmt.Sprintf("%s-%d", a.name, a.lives) }

// startTime is more than a process needs to begin, or what it has left in the database to end, on whatever machine.
const startTime = 3 * time.Minute

// start starts a life and returns when it works.
func (a *actor) start(ctx context.Context) (err error) {
	a.lives++
	log := filepath.Join(a.folder, a.life()+".log")
	a.program, err = publisher.Launch(a.binary, log, append([]string{"PGAPPNAME=" + a.life()}, a.environment...))
	if err != nil {
		return err
	}
	return cluster.Within(ctx, startTime, a.life()+" works", func() (bool, error) {
		said, err := os.ReadFile(log)
		if err == nil && a.ready.Match(said) {
			return true, nil
		}
		if !a.program.Alive() {
			return true, fmt.Errorf("endtoend: %s ended with %d while it started: %s", a.life(), a.program.ExitCode(), said[max(0, len(said)-2000):])
		}
		return false, err
	})
}

// cast are the processes of a round.
type cast []*actor

var (
	apiReady    = regexp.MustCompile(`(?m)^ready api `)
	workerReady = regexp.MustCompile(`(?m)^ready worker `)
	relayReady  = regexp.MustCompile(`answering probes`)
)

// newCast is one API, two publishers and two workers.
func newCast(plan Plan, folder, api string, environment []string) cast {
	binary := func(name string) string { return filepath.Join(plan.Programs, name) }
	with := func(more ...string) []string { return append(slices.Clone(environment), more...) }
	list := cast{{kind: API, name: "api", binary: binary("api"), ready: apiReady, environment: with("MARKETPLACE_API_LISTEN=" + api)}}
	for i := 1; i <= 2; i++ {
		list = append(list,
			&actor{kind: Relay, name: fmt.Sprintf("relay-%d", i), binary: binary("outbox-publisher"), ready: relayReady, environment: with(
				"POSTHASTE_HTTP_LISTEN=127.0.0.1:0", "POSTHASTE_RELAY_LEASE=15s", "POSTHASTE_RELAY_PUBLISH_DEADLINE=5s", "POSTHASTE_RELAY_POLL=500ms")},
			&actor{kind: Worker, name: fmt.Sprintf("worker-%d", i), binary: binary("worker"), ready: workerReady, environment: with(
				append([]string{"MARKETPLACE_WORKER_LISTEN=127.0.0.1:0", "MARKETPLACE_REDIS_HOLD=5s"}, plan.Environment...)...)},
		)
	}
	for _, a := range list {
		a.folder = folder
	}
	return list
}

func (c cast) start(ctx context.Context) error {
	for _, a := range c {
		if err := a.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// of are the actors of a kind.
func (c cast) of(kind Kind) cast {
	return slices.DeleteFunc(slices.Clone(c), func(a *actor) bool { return a.kind != kind })
}

// close ends whatever runs.
func (c cast) close() {
	for _, a := range c {
		if a.program != nil {
			a.program.Kill()
		}
	}
}
