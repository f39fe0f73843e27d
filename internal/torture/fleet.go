package torture

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/posthaste-dev/posthaste/internal/wait"
)

// process is one process of a relay.
type process struct {
	name    string
	command *exec.Cmd
	done    chan struct{} // closed when it ended; err is set then
	err     error
}

// Fleet keeps relays running.
type Fleet struct {
	plan Plan
	env  *Env

	mu      sync.Mutex
	started int
	slots   []*process
	// problems are processes that ended by themselves, or did not end when they were asked to.
	problems []error
	asked    map[*process]bool // to end
	busy     map[int]bool      // slots whose relay is down or stands still
	last     int               // the slot that was borrowed last
}

func newFleet(plan Plan, env *Env) *Fleet {
	return &Fleet{
		plan: plan, env: env, slots: make([]*process, plan.Relays), asked: map[*process]bool{}, busy: map[int]bool{},
	}
}

// start starts a new process in the slot, under a name that no other has.
func (f *Fleet) start(slot int) error {
	f.mu.Lock()
	f.started++
	settings := RelayProcess{
		Name: fmt.Sprintf("%d-%d", slot, f.started), Database: cmp.Or(f.plan.RelaysVia, f.plan.Postgres),
		Listen: f.plan.RelaysListen,
		Broker: cmp.Or(f.plan.BrokerVia, f.plan.Broker), Run: f.env.Run, Folder: f.plan.Folder, Lease: f.plan.Lease,
		Mutant:   f.plan.Mutant,
		LostAcks: f.plan.LostAcks,
	}
	f.mu.Unlock()
	if slot == 0 {
		settings.Database = cmp.Or(f.plan.FirstVia, settings.Database)
	}
	text, err := json.Marshal(settings)
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	file := filepath.Join(f.plan.Folder, "process-"+settings.Name+".json")
	if err := os.WriteFile(file, text, 0o600); err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	log, err := os.Create(logFile(f.plan.Folder, settings.Name))
	if err != nil {
		return fmt.Errorf("torture: %w", err)
	}
	defer log.Close() // the process has its own
	// Not CommandContext: an interrupted run ends its relays in killAll.
	executable := f.plan.Executable
	if slot == 0 {
		executable = cmp.Or(f.plan.FirstExecutable, executable)
	}
	command := exec.Command(executable, "relay", file) //nolint:gosec,noctx // the plan's own program
	command.Stdout, command.Stderr = log, log
	command.Env = append(os.Environ(), f.plan.Environment...)
	if _, err := command.StdinPipe(); err != nil { // held open as long as this process runs
		return fmt.Errorf("torture: %w", err)
	}
	if err := command.Start(); err != nil {
		return fmt.Errorf("torture: start a relay: %w", err)
	}
	p := &process{name: settings.Name, command: command, done: make(chan struct{})}
	f.mu.Lock()
	f.slots[slot] = p
	f.mu.Unlock()
	go f.wait(p)
	return nil
}

// wait records how the process ended.
func (f *Fleet) wait(p *process) {
	p.err = p.command.Wait()
	f.mu.Lock()
	if !f.asked[p] {
		f.problems = append(f.problems,
			fmt.Errorf("relay %s ended by itself: %w", p.name, errors.Join(p.err, errors.New(f.lastWords(p)))))
	}
	f.mu.Unlock()
	close(p.done)
}

// lastWords is the end of the process's log.
func (f *Fleet) lastWords(p *process) string {
	text, err := os.ReadFile(logFile(f.plan.Folder, p.name))
	if err != nil {
		return err.Error()
	}
	return strings.TrimSpace(string(text[max(0, len(text)-1000):]))
}

func logFile(folder, name string) string { return filepath.Join(folder, "relay-"+name+".log") }

// signal sends a signal to the slot's process. End tells that it shall end by it.
func (f *Fleet) signal(slot int, signal os.Signal, end bool) (*process, error) {
	f.mu.Lock()
	p := f.slots[slot]
	if end {
		f.asked[p] = true
	}
	f.mu.Unlock()
	if err := p.command.Process.Signal(signal); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return p, fmt.Errorf("torture: signal relay %s: %w", p.name, err)
	}
	return p, nil
}

// leaveTime is how long a relay that was asked to stop may take: its drain time, and much more.
const leaveTime = 2 * time.Minute

// awaitStart waits until a relay's process listens for signals, which it does before it opens its file of steps:
// one that is asked to stop before that dies of the signal.
func (f *Fleet) awaitStart(p *process) {
	look := time.NewTicker(5 * time.Millisecond)
	defer look.Stop()
	for range int(leaveTime / (5 * time.Millisecond)) {
		if _, err := os.Stat(stepsFile(f.plan.Folder, p.name)); err == nil {
			return
		}
		select {
		case <-p.done:
			return
		case <-look.C:
		}
	}
}

// leave asks the slot's relay to stop and waits until it has.
func (f *Fleet) leave(slot int) error {
	f.mu.Lock()
	starting := f.slots[slot]
	f.mu.Unlock()
	f.awaitStart(starting)
	p, err := f.signal(slot, syscall.SIGTERM, true)
	if err != nil {
		return err
	}
	timer := time.NewTimer(leaveTime)
	defer timer.Stop()
	select {
	case <-p.done:
		if p.err != nil && !f.broken(p) {
			f.problem(fmt.Errorf("relay %s was asked to stop and failed: %w", p.name, p.err))
		}
	case <-timer.C:
		f.problem(fmt.Errorf("relay %s was asked to stop and did not within %s", p.name, leaveTime))
		_ = p.command.Process.Kill() // it may have ended just now
		<-p.done
	}
	return nil
}

// broken tells whether the process had ended before it was asked to.
func (f *Fleet) broken(p *process) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return slices.ContainsFunc(f.problems, func(err error) bool {
		return strings.HasPrefix(err.Error(), "relay "+p.name+" ended by itself")
	})
}

func (f *Fleet) problem(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.problems = append(f.problems, err)
}

// leaveAll stops all relays at once.
func (f *Fleet) leaveAll() error {
	var group sync.WaitGroup
	problems := make([]error, len(f.slots))
	for slot := range f.slots {
		group.Go(func() { problems[slot] = f.leave(slot) })
	}
	group.Wait()
	return errors.Join(problems...)
}

// killAll ends whatever still runs.
func (f *Fleet) killAll() {
	f.mu.Lock()
	var running []*process
	for _, p := range f.slots {
		if p != nil {
			f.asked[p] = true
			running = append(running, p)
		}
	}
	f.mu.Unlock()
	for _, p := range running {
		_ = p.command.Process.Kill() // most have ended
		<-p.done
	}
}

// startAll starts one process in every slot.
func (f *Fleet) startAll(ctx context.Context) error {
	for slot := range f.slots {
		if err := errors.Join(ctx.Err(), f.start(slot)); err != nil {
			return err
		}
	}
	return nil
}

// allEnded tells whether no relay is left.
func (f *Fleet) allEnded() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !slices.ContainsFunc(f.slots, func(p *process) bool {
		select {
		case <-p.done:
			return false
		default:
			return true
		}
	})
}

func (f *Fleet) name(slot int) string {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.slots[slot].name
}

// borrow picks the next relay that is well, for a fault to hit; at least half of the fleet is left alone. It
// waits for one, and returns nil when the context ends before.
func (f *Fleet) borrow(ctx context.Context) (slot int, free func()) {
	for {
		if slot, free = f.victim(); free != nil {
			return slot, free
		}
		if wait.For(ctx, 10*time.Millisecond) != nil {
			return 0, nil
		}
	}
}

func (f *Fleet) victim() (slot int, free func()) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if 2*(len(f.busy)+1) > max(len(f.slots), 2) {
		return 0, nil
	}
	for f.last = (f.last + 1) % len(f.slots); f.busy[f.last]; {
		f.last = (f.last + 1) % len(f.slots)
	}
	slot = f.last
	f.busy[slot] = true
	return slot, func() {
		f.mu.Lock()
		defer f.mu.Unlock()
		delete(f.busy, slot)
	}
}
