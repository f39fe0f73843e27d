package upgrade

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/test/kit/eventually"
	"github.com/posthaste-dev/posthaste/test/kit/process"
	"github.com/posthaste-dev/posthaste/test/proof/publisher"
)

// stopTime is how long a process may take to stop: the publisher's drain time, and much more.
const stopTime = 2 * time.Minute

// side is the processes of the old programs, or of the new ones.
type side struct {
	env      *env
	name     string
	programs Programs
	started  int
	relays   map[string]*publisher.Program // by name
	producer *process.Process
	consumer *process.Process
	// histories of producers.
	history string
	report  *Report
}

func newSide(e *env, name string, programs Programs, report *Report) *side {
	return &side{
		env: e, name: name, programs: programs, relays: map[string]*publisher.Program{},
		history: filepath.Join(e.plan.Folder, name+"-producer.jsonl"), report: report,
	}
}

// startRelay starts one more, under a name that no other has had.
func (s *side) startRelay(ctx context.Context) error {
	s.started++
	name := fmt.Sprintf("%s-%d", s.name, s.started)
	environment, err := s.env.publisherEnvironment(name, s.env.run)
	if err != nil {
		return err
	}
	s.relays[name], err = publisher.StartProgram(ctx, s.programs.Publisher, filepath.Join(s.env.plan.Folder, name+".log"),
		environment)
	if err != nil {
		delete(s.relays, name)
		return fmt.Errorf("upgrade: start %s: %w", name, err)
	}
	return nil
}

// publisherEnvironment is all that a publisher is told: what every version knows.
func (e *env) publisherEnvironment(name, schema string) ([]string, error) {
	address, err := e.address("relay", name)
	return []string{
		"POSTHASTE_DATABASE_URL=" + address, "POSTHASTE_DATABASE_SCHEMA=" + schema, "POSTHASTE_REGISTRY_FILE=" + e.registry,
		"POSTHASTE_BROKER=nats", "POSTHASTE_NATS_URL=" + e.plan.NATS, "POSTHASTE_HTTP_LISTEN=127.0.0.1:0",
		"POSTHASTE_RELAY_NAME=" + name, "POSTHASTE_RELAY_LEASE=" + e.plan.Lease.String(), "HOME=" + e.plan.Folder,
	}, err
}

// startRelays starts so many.
func (s *side) startRelays(ctx context.Context, count int) error {
	for range count {
		if err := s.startRelay(ctx); err != nil {
			return err
		}
	}
	return nil
}

// stopRelays stops all of them, one after the other.
func (s *side) stopRelays(ctx context.Context) error {
	for name, relay := range s.relays {
		s.ended(name, relay.Process)
		stopped, err := relay.Process.Stop(ctx, stopTime)
		if err != nil {
			return err
		}
		if !stopped || relay.ExitCode() != 0 {
			s.report.problemf("%s was asked to stop, and ended with %v: %s", name, relay.Err(), relay.LastWords())
		}
		delete(s.relays, name)
	}
	return nil
}

// killRelay kills one, and tells the checker.
func (s *side) killRelay(ctx context.Context, faults *check.Writer) error {
	for name, relay := range s.relays {
		arrivals, err := s.env.torture.Arrivals(ctx)
		if err != nil {
			return err
		}
		s.ended(name, relay.Process)
		relay.Kill()
		delete(s.relays, name)
		return faults.Add(check.Record{Fault: &check.Fault{Kind: check.Kill, Relay: name, First: arrivals + 1}})
	}
	return nil
}

// ended is told before a process is stopped: one that has ended already did so by itself.
func (s *side) ended(name string, p *process.Process) {
	if !p.Alive() {
		s.report.problemf("%s ended by itself with %v: %s", name, p.Err(), p.LastWords())
	}
}

// alive tells whether a relay is left.
func (s *side) alive() bool {
	for _, relay := range s.relays {
		if relay.Alive() {
			return true
		}
	}
	return false
}

// startProducer and startConsumer start an application.
func (s *side) startProducer() (err error) {
	s.producer, err = s.startClient("produce", "producer", map[string]any{
		"history": s.history, "rate": s.env.plan.Rate, "things": s.env.plan.Things,
	})
	return err
}

func (s *side) startConsumer() (err error) {
	s.consumer, err = s.startClient("consume", "consumer", map[string]any{
		"nats": s.env.plan.NATS, "stream": s.env.run, "deadLetters": s.env.deadLetters(),
	})
	return err
}

func (s *side) startClient(what, part string, told map[string]any) (*process.Process, error) {
	address, err := s.env.address(part, s.name)
	if err != nil {
		return nil, err
	}
	told["name"], told["database"], told["schema"] = s.name, address, s.env.run
	text, err := json.Marshal(told)
	if err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	file := filepath.Join(s.env.plan.Folder, s.name+"-"+part)
	if err := os.WriteFile(file+".json", text, 0o600); err != nil {
		return nil, fmt.Errorf("upgrade: %w", err)
	}
	return process.Start(process.Command{
		Program: s.programs.Client, Args: []string{what, file + ".json"}, Log: file + ".log",
		Environment: []string{"HOME=" + s.env.plan.Folder},
	})
}

// stopClient stops an application, which must have gone on until then.
func (s *side) stopClient(ctx context.Context, part string, p *process.Process) error {
	if p == nil {
		return nil
	}
	name := s.name + " " + part
	if !p.Alive() {
		s.ended("the "+name, p)
		return nil
	}
	stopped, err := p.Stop(ctx, stopTime)
	if err == nil && (!stopped || p.ExitCode() != 0) {
		s.report.problemf("the %s was asked to stop, and ended with %v: %s", name, p.Err(), p.LastWords())
	}
	return err
}

// kill ends whatever still runs.
func (s *side) kill() {
	for _, relay := range s.relays {
		relay.Kill()
	}
	for _, p := range []*process.Process{s.producer, s.consumer} {
		if p != nil {
			p.Kill()
		}
	}
}

// rejected starts a new publisher in front of a schema that is too old for it: it must end by itself and say which
// version there is, which it needs, and what to run.
func (e *env) rejected(ctx context.Context, found, needed int, patience time.Duration) (problem string, err error) {
	schema := e.run + "_refused"
	defer func() {
		dropping, cancel := context.WithTimeout(context.WithoutCancel(ctx), eventually.Patience)
		defer cancel()
		if dropped := e.do(dropping, "DROP SCHEMA IF EXISTS "+schema+" CASCADE"); err == nil {
			err = dropped
		}
	}()
	if _, err := operate(ctx, e.plan.NewPrograms.Operator, e.plan.Postgres, schema, "migrate", "up", "--target",
		fmt.Sprint(found)); err != nil {
		return "", err
	}
	environment, err := e.publisherEnvironment("refused", schema)
	if err != nil {
		return "", err
	}
	environment = append(environment, "POSTHASTE_DATABASE_URL="+e.plan.Postgres) // the owner; the last one counts
	p, err := process.Start(process.Command{
		Program: e.plan.NewPrograms.Publisher, Environment: environment, Log: filepath.Join(e.plan.Folder, "refused.log"),
	})
	if err != nil {
		return "", err
	}
	defer p.Kill()
	if !p.Await(ctx, patience) {
		return fmt.Sprintf("a new publisher goes on before a schema of version %d, though it needs %d", found, needed), nil
	}
	said := p.Said()
	for _, words := range []string{
		fmt.Sprintf("has version %d", found), fmt.Sprintf("needs %d", needed), "outboxctl migrate up",
	} {
		if p.ExitCode() == 0 || !strings.Contains(said, words) {
			return fmt.Sprintf("a new publisher before a schema of version %d ended with %d and did not say %q: %s", found,
				p.ExitCode(), words, p.LastWords()), nil
		}
	}
	return "", nil
}
