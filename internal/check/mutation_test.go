package check_test

import (
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/posthaste-dev/posthaste/internal/check"
)

// mutation makes a valid history wrong in one way. apply reports false where the history has nothing that
// could be wrong in this way.
type mutation struct {
	name   string
	caught check.Counter   // must be counted
	also   []check.Counter // may be counted, because it follows
	apply  func(*view) bool
}

// view is a history under mutation, with the questions that mutations ask. The answers are those of
// before the mutation.
type view struct {
	rand    *rand.Rand
	history check.History
	of      map[check.ID]*facts
	ends    map[string]check.Outcome // the last word about each transaction
}

// facts is what a history says about one event.
type facts struct {
	event      check.Event
	state      check.State
	deliveries int
	copies     int // those of the deliveries that were asked for
	publishes  int
	faults     int
	letters    int
}

func newView(seed uint64) *view {
	v := &view{
		rand: rand.New(rand.NewPCG(seed, 2)), history: generate(seed, 3+int(seed%11), 60),
		of: map[check.ID]*facts{{}: {}}, ends: map[string]check.Outcome{},
	}
	for _, r := range v.history {
		if r.Tx != nil {
			v.ends[r.Tx.Key] = r.Tx.Outcome
			for _, e := range r.Tx.Events {
				v.of[e.ID] = &facts{event: e, state: check.Absent}
			}
		}
		v.learn(r)
	}
	return v
}

func (v *view) learn(r check.Record) {
	switch {
	case r.Delivery != nil:
		v.of[r.Delivery.ID].deliveries++
		if r.Delivery.Request != 0 {
			v.of[r.Delivery.ID].copies++
		}
	case r.Row != nil:
		v.of[r.Row.ID].state = r.Row.State
	case r.Letter != nil:
		v.of[r.Letter.ID].letters++
	case r.Fault != nil:
		v.of[r.Fault.ID].faults++
	case r.Step != nil && r.Step.Do == check.Publish:
		v.of[r.Step.ID].publishes++
	}
}

// pick returns a random record that fits, or nil.
func (v *view) pick(fits func(*check.Record) bool) *check.Record {
	begin := v.rand.IntN(len(v.history))
	for i := range v.history {
		if r := &v.history[(begin+i)%len(v.history)]; fits(r) {
			return r
		}
	}
	return nil
}

// edit changes a random record that fits.
func (v *view) edit(fits func(*check.Record) bool, change func(*check.Record)) bool {
	r := v.pick(fits)
	if r != nil {
		change(r)
	}
	return r != nil
}

// drop removes a random record that fits.
func (v *view) drop(fits func(*check.Record) bool) bool {
	r := v.pick(fits)
	if r == nil {
		return false
	}
	v.history = slices.DeleteFunc(v.history, func(other check.Record) bool { return other == *r })
	return true
}

// add puts records just before the end.
func (v *view) add(records ...check.Record) bool {
	v.history = slices.Insert(v.history, len(v.history)-1, records...)
	return true
}

// after puts a record right behind another.
func (v *view) after(r *check.Record, record check.Record) bool {
	at := slices.Index(v.history, *r)
	v.history = slices.Insert(v.history, at+1, record)
	return true
}

func (v *view) any(fits func(*check.Record) bool) bool { return v.pick(fits) != nil }

func (v *view) state(id check.ID) check.State { return v.of[id].state }

func (v *view) deliveries(id check.ID) int { return v.of[id].deliveries }

func (v *view) event(id check.ID) check.Event { return v.of[id].event }

// causes counts what could explain a duplicate of the event: all publishes that were not settled as
// published, whatever their end, and faults of its own.
func (v *view) causes(id check.ID) int { return v.of[id].publishes - 1 + v.of[id].faults }

// plain tells whether the event went out once, at the first attempt.
func (v *view) plain(id check.ID) bool {
	return v.deliveries(id) == 1 && v.causes(id) == 0 && v.state(id) == check.Published
}

func (v *view) arrivals() uint64 {
	n := uint64(0)
	for _, f := range v.of {
		n += uint64(f.deliveries)
	}
	return n
}

// mutate generates a history and applies the mutation to it.
func mutate(m *mutation, seed uint64) (check.History, bool) {
	v := newView(seed)
	applied := m.apply(v)
	return v.history, applied
}

// TestMutationsAreCaught applies every mutation to many histories: it must be caught, by its own counter,
// and nothing may be counted that does not follow from it.
func TestMutationsAreCaught(t *testing.T) {
	t.Parallel()
	for i := range mutations {
		m := &mutations[i]
		t.Run(m.name, func(t *testing.T) {
			t.Parallel()
			applied := 0
			for seed := uint64(0); seed < 400 && applied < 25; seed++ {
				history, is := mutate(m, seed)
				if !is {
					continue
				}
				applied++
				if problem := m.problem(history.Check(check.Floor{})); problem != "" {
					t.Fatalf("seed %d: %s", seed, problem)
				}
			}
			if applied < 25 {
				t.Fatalf("only %d histories had anything to mutate", applied)
			}
		})
	}
}

// problem says what is wrong with the verdict on a mutated history.
func (m *mutation) problem(v *check.Verdict) string {
	if v.Pass() {
		return "it passes: " + v.Line()
	}
	if m.caught != tooLittle && v.Count(m.caught) == 0 {
		return "it is caught by something else than " + m.caught.String() + ": " + v.Line()
	}
	for _, c := range check.Counters() {
		if c.MustBeZero() && c != m.caught && v.Count(c) != 0 && !slices.Contains(m.also, c) {
			return c.String() + " does not follow from it: " + v.Line()
		}
	}
	return ""
}
