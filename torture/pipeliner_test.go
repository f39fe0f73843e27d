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
	"github.com/posthaste-dev/posthaste/relay"
)

// patient is a pipeliner that takes everything, and answers when it is told to.
type patient struct {
	mu      sync.Mutex
	taken   []int64
	answers []func(error)
}

func (p *patient) Depth() int                                    { return 10 }
func (p *patient) Publish(context.Context, *relay.Message) error { return errors.New("not used") }
func (p *patient) Enqueue(_ context.Context, m *relay.Message, done func(error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.taken, p.answers = append(p.taken, m.Seq), append(p.answers, done)
}

// desk hands messages to a hostile pipeliner and hears its answers.
type desk struct {
	t      *testing.T
	inner  *patient
	outer  relay.Pipeliner
	folder string
}

func newDesk(t *testing.T, lostAcks int) *desk {
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
	outer, is := newHostile(inner, Life{Name: "1", Folder: folder, LostAcks: lostAcks}, check.NewWriter(file)).(relay.Pipeliner)
	if !is {
		t.Fatal("what is in front of a pipeliner is none")
	}
	return &desk{t: t, inner: inner, outer: outer, folder: folder}
}

// outage lets the topic refuse everything, or no more.
func (d *desk) outage(on bool) {
	d.t.Helper()
	name := filepath.Join(d.folder, outagesFolder, "topic")
	err := os.Remove(name)
	if on {
		err = os.WriteFile(name, nil, 0o600)
	}
	if err != nil {
		d.t.Fatal(err)
	}
}

// refused hands a message over that must be answered at once.
func (d *desk) refused(seq int64) error {
	d.t.Helper()
	return d.answer(seq, d.hand(seq))
}

// answer waits for what becomes of a message.
func (d *desk) answer(seq int64, answer <-chan error) error {
	d.t.Helper()
	select {
	case err := <-answer:
		return err
	case <-time.After(time.Minute):
		d.t.Fatalf("%d was taken, and is not answered", seq)
		return nil
	}
}

func (d *desk) hand(seq int64) chan error {
	answer := make(chan error, 1)
	d.outer.Enqueue(d.t.Context(), &relay.Message{ID: calm(d.t, d.outer), Topic: "topic", Key: "thing/1", Seq: seq, Body: []byte("{}")}, func(err error) { answer <- err })
	return answer
}

// calm is an id that is not refused by chance.
func calm(t *testing.T, p relay.Pipeliner) outbox.ID {
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

// What is behind a message that failed fails too, until the relay, which was told, begins anew.
func TestHostilePipelinerKeepsTheLine(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 0)
	d.outage(true)
	if err := d.refused(1); !errors.As(err, new(*relay.RouteError)) {
		t.Fatalf("the first is answered with %v", err)
	}
	d.outage(false)
	if err := d.refused(2); !errors.Is(err, relay.ErrNotSent) {
		t.Fatalf("one behind it is answered with %v", err)
	}
	d.hand(1)
	d.hand(2)
	if len(d.inner.taken) != 2 || d.inner.taken[0] != 1 || d.inner.taken[1] != 2 {
		t.Errorf("taken are %v", d.inner.taken)
	}
}

// One that fails again when it is handed over anew holds back what had failed with it before.
func TestHostilePipelinerFailsAgain(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 0)
	d.outage(true)
	for _, seq := range []int64{1, 2, 3, 1} {
		if err := d.refused(seq); err == nil {
			t.Fatalf("%d is not refused", seq)
		}
	}
	d.outage(false)
	if err := d.refused(2); !errors.Is(err, relay.ErrNotSent) {
		t.Errorf("one behind it is answered with %v", err)
	}
	if len(d.inner.taken) != 0 {
		t.Errorf("taken are %v", d.inner.taken)
	}
}

// A lost acknowledgement is one of the last of its line, and is written down.
func TestHostilePipelinerLosesTheLastAck(t *testing.T) {
	t.Parallel()
	d := newDesk(t, 1000)
	first, last := d.hand(1), d.hand(2)
	for _, answer := range d.inner.answers {
		answer(nil)
	}
	if err := d.answer(1, first); err != nil {
		t.Errorf("the first is answered with %v", err)
	}
	if err := d.answer(2, last); !errors.Is(err, errNoAck) {
		t.Errorf("the last is answered with %v", err)
	}
	faults, err := os.ReadFile(filepath.Join(d.folder, "faults"))
	if err != nil || len(faults) == 0 {
		t.Errorf("the log says %q, %v", faults, err)
	}
}
