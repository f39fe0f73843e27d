package torture

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/publish"
)

// patient is a pipeliner that takes everything, and answers when the test says so.
type patient struct {
	mu      sync.Mutex
	taken   []int64
	answers []func(error)
}

func (p *patient) Depth() int                                      { return 10 }
func (p *patient) Publish(context.Context, *publish.Message) error { return errors.New("not used") }
func (p *patient) Enqueue(_ context.Context, m *publish.Message, done func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken, p.answers = append(p.taken, m.Seq), append(p.answers, done)
}

// pipelinerEnv hands messages to a hostile pipeliner and gets its answers.
type pipelinerEnv struct {
	t      *testing.T
	inner  *patient
	outer  publish.Pipeliner
	folder string
}

func newPipelinerEnv(t *testing.T, lostAcks int) *pipelinerEnv {
	t.Helper()
	folder := t.TempDir()
	if err := os.Mkdir(filepath.Join(folder, outagesFolder), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := os.Create(filepath.Join(folder, "faults"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	inner := &patient{}
	outer, is := newHostile(inner, RelayProcess{Name: "1", Folder: folder, LostAcks: lostAcks},
		check.NewWriter(file)).(publish.Pipeliner)
	if !is {
		t.Fatal("what is in front of a pipeliner is none")
	}
	return &pipelinerEnv{t: t, inner: inner, outer: outer, folder: folder}
}

// outage lets the topic reject everything, or no more.
func (e *pipelinerEnv) outage(on bool) {
	e.t.Helper()
	name := filepath.Join(e.folder, outagesFolder, "topic")
	err := os.Remove(name)
	if on {
		err = os.WriteFile(name, nil, 0o600)
	}
	if err != nil {
		e.t.Fatal(err)
	}
}

// failed hands a message over that must be answered at once.
func (e *pipelinerEnv) failed(seq int64) error {
	e.t.Helper()
	return e.answer(seq, e.hand(seq))
}

// answer waits for what becomes of a message.
func (e *pipelinerEnv) answer(seq int64, answer <-chan error) error {
	e.t.Helper()
	select {
	case err := <-answer:
		return err
	case <-time.After(time.Minute):
		e.t.Fatalf("%d was taken, and is not answered", seq)
		return nil
	}
}

func (e *pipelinerEnv) hand(seq int64) chan error {
	answer := make(chan error, 1)
	e.outer.Enqueue(e.t.Context(), &publish.Message{
		ID: passingID(e.t, e.outer), Topic: "topic", Key: "thing/1", Seq: seq, Body: []byte("{}"),
	}, func(err error) { answer <- err })
	return answer
}

// passingID is an id that does not fail by chance.
func passingID(t *testing.T, p publish.Pipeliner) outbox.ID {
	t.Helper()
	outer, is := p.(*hostilePipeliner)
	if !is {
		t.Fatalf("%T", p)
	}
	for {
		id := outbox.NewID()
		chance := outer.chance(id)
		delete(outer.tries, id)
		if chance%1000 >= 50 {
			return id
		}
	}
}

// What is behind a message that failed fails too, until the relay knows of it and begins anew.
func TestHostilePipelinerKeepsTheLine(t *testing.T) {
	t.Parallel()
	e := newPipelinerEnv(t, 0)
	e.outage(true)
	if err := e.failed(1); !errors.As(err, new(*publish.TopicError)) {
		t.Fatalf("the first is answered with %v", err)
	}
	e.outage(false)
	if err := e.failed(2); !errors.Is(err, publish.ErrNotSent) {
		t.Fatalf("one behind it is answered with %v", err)
	}
	e.hand(1)
	e.hand(2)
	if len(e.inner.taken) != 2 || e.inner.taken[0] != 1 || e.inner.taken[1] != 2 {
		t.Errorf("taken are %v", e.inner.taken)
	}
}

// One that fails again when it is handed over anew holds back what had failed with it before.
func TestHostilePipelinerFailsAgain(t *testing.T) {
	t.Parallel()
	e := newPipelinerEnv(t, 0)
	e.outage(true)
	for _, seq := range []int64{1, 2, 3, 1} {
		if err := e.failed(seq); err == nil {
			t.Fatalf("%d does not fail", seq)
		}
	}
	e.outage(false)
	if err := e.failed(2); !errors.Is(err, publish.ErrNotSent) {
		t.Errorf("one behind it is answered with %v", err)
	}
	if len(e.inner.taken) != 0 {
		t.Errorf("taken are %v", e.inner.taken)
	}
}

// A lost acknowledgement is one of the last of its line, and is written down.
func TestHostilePipelinerLosesTheLastAck(t *testing.T) {
	t.Parallel()
	e := newPipelinerEnv(t, 1000)
	first, last := e.hand(1), e.hand(2)
	for _, answer := range e.inner.answers {
		answer(nil)
	}
	if err := e.answer(1, first); err != nil {
		t.Errorf("the first is answered with %v", err)
	}
	if err := e.answer(2, last); !errors.Is(err, errNoAck) {
		t.Errorf("the last is answered with %v", err)
	}
	faults, err := os.ReadFile(filepath.Join(e.folder, "faults"))
	if err != nil || len(faults) == 0 {
		t.Errorf("the log says %q, %v", faults, err)
	}
}
