package marketplace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/process"
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

	starts  int
	program *process.Process
}

// instance names the present process, also to the database.
func (a *actor) instance() string { return fmt.Sprintf("%s-%d", a.name, a.starts) }

// startTime is more than a process needs to begin, or what it has left in the database to end, on whatever machine.
const startTime = 3 * time.Minute

// start starts a process and returns when it works.
func (a *actor) start(ctx context.Context) (err error) {
	a.starts++
	log := filepath.Join(a.folder, a.instance()+".log")
	a.program, err = process.Start(process.Command{
		Program: a.binary, Environment: append([]string{"PGAPPNAME=" + a.instance()}, a.environment...), Log: log,
	})
	if err != nil {
		return err
	}
	return eventually.Within(ctx, startTime, a.instance()+" works", func() (bool, error) {
		said, err := os.ReadFile(log)
		if err == nil && a.ready.Match(said) {
			return true, nil
		}
		if !a.program.Alive() {
			return true, fmt.Errorf("marketplace proof: %s ended with %d while it started: %s", a.instance(),
				a.program.ExitCode(),
				said[max(0, len(said)-2000):])
		}
		return false, err
	})
}

// processes are the processes of a round.
type processes []*actor

var (
	apiReady    = regexp.MustCompile(`(?m)^ready api `)
	workerReady = regexp.MustCompile(`(?m)^ready worker `)
	relayReady  = regexp.MustCompile(`answering probes`)
)

// newProcesses is one API, two publishers and two workers.
func newProcesses(plan Plan, folder, api string, environment []string) processes {
	binary := func(name string) string { return filepath.Join(plan.Programs, name) }
	with := func(more ...string) []string { return append(slices.Clone(environment), more...) }
	list := processes{
		{kind: API, name: "api", binary: binary("api"), ready: apiReady, environment: with("MARKETPLACE_API_LISTEN=" + api)},
	}
	for i := 1; i <= 2; i++ {
		list = append(list,
			&actor{
				kind: Relay, name: fmt.Sprintf("relay-%d", i), binary: binary("outbox-publisher"), ready: relayReady,
				environment: with(
					"POSTHASTE_HTTP_LISTEN=127.0.0.1:0", "POSTHASTE_RELAY_LEASE=15s", "POSTHASTE_RELAY_PUBLISH_DEADLINE=5s",
					"POSTHASTE_RELAY_POLL=500ms"),
			},
			&actor{
				kind: Worker, name: fmt.Sprintf("worker-%d", i), binary: binary("worker"), ready: workerReady, environment: with(
					append([]string{"MARKETPLACE_WORKER_LISTEN=127.0.0.1:0", "MARKETPLACE_REDIS_HOLD=5s"}, plan.Environment...)...),
			},
		)
	}
	for _, a := range list {
		a.folder = folder
	}
	return list
}

func (c processes) start(ctx context.Context) error {
	for _, a := range c {
		if err := a.start(ctx); err != nil {
			return err
		}
	}
	return nil
}

// of are the actors of a kind.
func (c processes) of(kind Kind) processes {
	return slices.DeleteFunc(slices.Clone(c), func(a *actor) bool { return a.kind != kind })
}

// close ends whatever runs.
func (c processes) close() {
	for _, a := range c {
		if a.program != nil {
			a.program.Kill()
		}
	}
}
