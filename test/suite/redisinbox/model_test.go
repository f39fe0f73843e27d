package redisinbox

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/inbox/redisinbox"
)

// What a handler is told to do.
type verdict int

const (
	succeeds verdict = iota
	fails
	panics
)

// A delivery is a call of Do whose handler waits for its verdict.
type delivery struct {
	token   string // of its hold, without "held:"
	entered chan struct{}
	verdict chan verdict
	answer  chan error // what Do returned, or what the panic said
	already bool
}

var errPanicked = errors.New("the handler panicked")

// start begins a delivery and waits until its handler runs or Do has returned without it.
func (m *model) start() (d *delivery, running bool, err error) {
	d = &delivery{entered: make(chan struct{}), verdict: make(chan verdict), answer: make(chan error, 1)}
	go func() {
		defer func() {
			if got := recover(); got != nil {
				d.answer <- errPanicked
			}
		}()
		var err error
		d.already, err = m.do(m.t.Context(), func(context.Context) error {
			close(d.entered)
			switch <-d.verdict {
			case fails:
				return errFailed
			case panics:
				panic("as it was told")
			default:
				return nil
			}
		})
		d.answer <- err
	}()
	select {
	case <-d.entered:
		return d, true, nil
	case err = <-d.answer:
		return d, false, err
	}
}

// The model of a mark: nothing, held by a delivery, done, or marked by a guard's one call.
type model struct {
	env
	t      *testing.T
	random *rand.Rand
	guards []*redisinbox.Guard // of the one-call form

	state    string // "", "held", "done", "marked"
	holder   *delivery
	marker   int
	running  []*delivery
	finished int // handlers that have returned nil
	lapses   int
	story    []string
	seen     map[string]int
}

func (m *model) logf(format string, args ...any) {
	m.story = append(m.story, fmt.Sprintf(format, args...))
}

// kind counts a case, so that a run knows that it has met all.
func (m *model) kind(name string) { m.seen[name]++ }

// step takes one step at random, and returns what is wrong with its answer.
func (m *model) step() error {
	switch n := m.random.IntN(100); {
	case n < 30:
		return m.deliver()
	case n < 65:
		return m.settle(verdict(m.random.IntN(3)))
	case n < 80:
		return m.forget(m.random.IntN(5) == 0)
	case n < 90:
		return m.mark(m.random.IntN(len(m.guards)))
	default:
		return m.unmark(m.random.IntN(len(m.guards)))
	}
}

// deliver begins a delivery.
func (m *model) deliver() error {
	if len(m.running) == 5 {
		return nil
	}
	d, running, err := m.start()
	m.logf("a delivery meets %q: running %v, already %v, %v", m.state, running, d.already, err)
	m.kind("delivered to " + m.state)
	switch m.state {
	case "":
		if !running {
			return fmt.Errorf("nobody holds the event and the handler was not run: %w", err)
		}
		d.token = strings.TrimPrefix(m.env.mark(m.t), "held:")
		m.state, m.holder, m.running = "held", d, append(m.running, d)
	case "held":
		if _, held := errors.AsType[*redisinbox.HeldError](err); !held {
			return fmt.Errorf("another holds the event, and running=%v, already=%v, err=%w", running, d.already, err)
		}
	default:
		if running || !d.already || err != nil {
			return fmt.Errorf("the event is handled, and running=%v, already=%v, err=%w", running, d.already, err)
		}
	}
	return nil
}

// settle has one of the handlers that run return.
func (m *model) settle(v verdict) error {
	if len(m.running) == 0 {
		return nil
	}
	n := m.random.IntN(len(m.running))
	d := m.running[n]
	m.running = append(m.running[:n], m.running[n+1:]...)
	d.verdict <- v
	err := <-d.answer
	own := m.state == "held" && m.holder == d
	m.logf("a handler returns %v; the event is its own: %v, the mark is %q; %v", v, own, m.state, err)
	m.kind(fmt.Sprintf("returned %v, own %v, to %s", v, own, m.state))
	var lost *redisinbox.LostError
	switch {
	case v == succeeds && (own || m.state == ""):
		m.state, m.finished = "done", m.finished+1
		return err
	case v == succeeds:
		m.finished++
		if !errors.As(err, &lost) || !redisinbox.Handled(err) {
			return fmt.Errorf("another has the event, and the finish says %w", err)
		}
	case v == fails && !errors.Is(err, errFailed), v == panics && !errors.Is(err, errPanicked):
		return fmt.Errorf("the handler failed, and Do says %w", err)
	case own:
		m.state = ""
	}
	return nil
}

// forget has a hold lapse; or a mark of any kind vanish, as Redis may do.
func (m *model) forget(anything bool) error {
	if m.state != "held" && !anything {
		return nil
	}
	m.logf("%q is forgotten", m.state)
	m.kind("forgot " + m.state)
	m.state, m.lapses = "", m.lapses+1
	return m.client.Del(m.t.Context(), m.key).Err()
}

// mark is the one-call form.
func (m *model) mark(guard int) error {
	already, err := m.guards[guard].CheckAndMarkProcessed(m.t.Context(), consumer, m.id, time.Minute)
	m.logf("guard %d checks and marks %q: already %v, %v", guard, m.state, already, err)
	m.kind("marked " + m.state)
	var held *redisinbox.HeldError
	switch m.state {
	case "":
		if already || err != nil {
			return fmt.Errorf("nobody has handled the event, and already=%v, err=%w", already, err)
		}
		m.state, m.marker = "marked", guard
	case "held":
		if already || !errors.As(err, &held) {
			return fmt.Errorf("another holds the event, and already=%v, err=%w", already, err)
		}
	default:
		if !already || err != nil {
			return fmt.Errorf("the event is handled, and already=%v, err=%w", already, err)
		}
	}
	return nil
}

// unmark is its delete.
func (m *model) unmark(guard int) error {
	err := m.guards[guard].Delete(m.t.Context(), consumer, m.id)
	own := m.state == "marked" && m.marker == guard
	m.logf("guard %d deletes %q, its own: %v; %v", guard, m.state, own, err)
	m.kind(fmt.Sprintf("deleted %s, own %v", m.state, own))
	if own {
		m.state = ""
	} else if m.state != "" {
		if err == nil {
			return errors.New("a mark that is another's was deleted without a word")
		}
		return nil
	}
	return err
}

// compare holds what is in Redis against the model.
func (m *model) compare() error {
	found := m.env.mark(m.t)
	kind, token, _ := strings.Cut(found, ":")
	if kind != m.state || kind == "held" && token != m.holder.token {
		return fmt.Errorf("the mark is %q, and should be %q", found, m.state)
	}
	left := m.client.PTTL(m.t.Context(), m.key).Val()
	if found != "" && left <= 0 {
		return fmt.Errorf("the mark %q does not expire", found)
	}
	return nil
}

// Deliveries begin, succeed, fail and panic in any order, holds lapse and marks vanish between them, and both forms
// meet: after every step the mark is what the model says, and so is every answer.
func TestTheModel(t *testing.T) {
	t.Parallel()
	seen := map[string]int{}
	for seed := range uint64(300) {
		m := &model{t: t, random: rand.New(rand.NewPCG(seed, 0)), env: newEnv(t, long), seen: seen}
		config := long
		config.Prefix, _, _ = strings.Cut(m.key, ":")
		m.guards = []*redisinbox.Guard{newGuard(t, m.client, config), newGuard(t, m.client, config)}
		var err error
		for step := 0; step < 40 && err == nil; step++ {
			err = errors.Join(m.step(), m.compare())
		}
		for _, d := range m.running {
			d.verdict <- fails
			<-d.answer
		}
		_ = m.client.Close()
		if err != nil {
			t.Fatalf("seed %d: %v\n%s", seed, err, strings.Join(m.story, "\n"))
		}
	}
	for _, kind := range []string{
		"delivered to ", "delivered to held", "delivered to done", "delivered to marked",
		"returned 0, own true, to held", "returned 0, own false, to ", "returned 0, own false, to held",
		"returned 0, own false, to done", "returned 0, own false, to marked",
		"returned 1, own true, to held", "returned 1, own false, to held", "returned 1, own false, to done",
		"returned 1, own false, to ",
		"returned 2, own true, to held", "returned 2, own false, to held", "returned 2, own false, to done",
		"forgot held", "forgot done", "marked ", "marked held", "marked done", "deleted marked, own true",
		"deleted marked, own false", "deleted held, own false", "deleted done, own false",
	} {
		if seen[kind] == 0 {
			t.Errorf("%q has not happened: too little was tested", kind)
		}
	}
}
