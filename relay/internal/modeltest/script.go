package modeltest

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// step is one action, to be done on both sides.
type step struct {
	kind string
	what any // what is asked for, to be printed
	do   func(ctx context.Context, side side) ([]string, error)
	// among, where it is set, are all the lines that an answer may have: a limit cuts it, and which of them
	// are left is not promised. The number of lines is.
	among []string
	// learn, where it is set, lets the script know what came of it, from the model.
	learn func(answer []string)
}

// script makes up actions. It looks at the model to find ones that do something.
type script struct {
	rng        *rand.Rand
	busy       *rand.Rand // of busy topics: whatever else a seed does, it did before there were any
	model      *model
	lanes      []int16
	aggregates []core.Aggregate
	laneOf     map[core.Aggregate]int16

	steps   int
	ids     map[byte]int
	events  []outbox.ID // that were ever written, committed or not
	open    []int       // transactions
	begun   int
	wrote   map[int]bool           // transactions that have something to commit
	drawn   map[int][]int64        // numbers not used yet, by transaction
	fenced  []int                  // transactions of the last fence that had an xid
	last    int64                  // the highest number drawn
	holds   []hold                 // every lane that was ever acquired
	beats   map[outbox.ID]int64    // the number of each relay's last beat
	stuck   map[outbox.ID][]int64  // numbers of beats that come late
	known   map[outbox.ID][]string // the types that each relay has said it knows
	settled []*settlement          // the last settles

	redeliveries  []redelivery
	cancellations []cancellation

	planned []func() *step // what comes next, where that is not left to chance
	saw     map[string]int // what was met, to know that enough was
}

func newScript(seed uint64, m *model, laneOf map[core.Aggregate]int16) *script {
	aggregates := slices.SortedFunc(maps.Keys(laneOf), func(a, b core.Aggregate) int {
		return strings.Compare(a.ID, b.ID)
	})
	lanes := slices.Compact(slices.Sorted(maps.Values(laneOf)))
	return &script{
		rng: rand.New(rand.NewPCG(seed, 0)), busy: rand.New(rand.NewPCG(seed, 1)), model: m,
		lanes:      append(lanes, 42), // and one in which nothing ever is
		aggregates: aggregates, laneOf: laneOf, ids: map[byte]int{}, saw: map[string]int{},
		wrote: map[int]bool{}, drawn: map[int][]int64{}, beats: map[outbox.ID]int64{},
		stuck: map[outbox.ID][]int64{}, known: map[outbox.ID][]string{},
	}
}

// choices are what may be done next, and how often. nil is not possible now.
var choices = []struct {
	kind   string
	weight int
	plan   func(*script) *step
}{ // the first four also begin a sequence, so that there is something to work on
	{"begin", 8, (*script).begin},
	{"emit", 14, (*script).emit},
	{"commit", 9, (*script).commit},
	{"acquire", 7, (*script).acquire},
	{"draw", 4, (*script).draw},
	{"emit_drawn", 4, (*script).emitDrawn},
	{"undo", 3, (*script).undo},
	{"rollback", 2, (*script).rollback},
	{"heartbeat", 4, (*script).heartbeat},
	{"release", 6, (*script).release},
	{"register", 3, (*script).register},
	{"expire_relay", 7, (*script).expireRelay},
	{"end_expired", 3, (*script).endExpired},
	{"fence", 6, (*script).fence},
	{"read", 10, (*script).read},
	{"barrier", 1, (*script).barrier},
	{"settle", 22, (*script).settle},
	{"settle_again", 4, (*script).settleAgain},
	{"unpark", 8, (*script).unpark},
	{"held_keys", 3, (*script).heldKeys},
	{"due_keys", 10, (*script).dueKeys},
	{"held_rows", 5, (*script).heldRows},
	{"old_parked", 5, (*script).oldParked},
	{"note", 6, (*script).note},
	{"sweep", 2, (*script).sweep},
	{"save_routes", 6, (*script).saveTopics},
	{"redrive", 3, (*script).redrive},
	{"skip", 4, (*script).skip},
	{"free", 2, (*script).free},
	{"discard", 3, (*script).discard},
	{"pause", 3, (*script).pause},
	{"resume", 2, (*script).resume},
	{"limit", 2, (*script).limit},
	{"redeliver", 9, (*script).redeliver},
	{"redeliver_again", 2, (*script).redeliverAgain},
	{"cancel", 6, (*script).cancel},
	{"take_requests", 8, (*script).takeRequests},
	{"settle_requests", 7, (*script).settleRequests},
}

// Kinds are the actions that a script is made of.
func Kinds() []string {
	kinds := make([]string, len(choices))
	for i, c := range choices {
		kinds[i] = c.kind
	}
	return kinds
}

// next makes up an action that is possible now.
func (s *script) next() *step {
	const opening, openers = 10, 4
	choices := choices
	if s.steps++; s.steps <= opening {
		choices = choices[:openers]
	}
	total := 0
	for _, c := range choices {
		total += c.weight
	}
	for len(s.planned) > 0 {
		plan := s.planned[0]
		s.planned = s.planned[1:]
		if step := plan(); step != nil {
			return step
		}
	}
	for {
		n := s.rng.IntN(total)
		for _, c := range choices {
			if n -= c.weight; n < 0 {
				if step := c.plan(s); step != nil {
					step.kind = c.kind
					return step
				}
				break
			}
		}
	}
}

func (s *script) newID(kind byte) outbox.ID {
	s.ids[kind]++
	return newID(kind, s.ids[kind])
}

func (s *script) chance(percent int) bool { return s.rng.IntN(100) < percent }

func pick[T any](s *script, from []T) T { return from[s.rng.IntN(len(from))] }

// some returns between least and all of the items, in random order.
func some[T any](s *script, from []T, least int) []T {
	items := slices.Clone(from)
	s.rng.Shuffle(len(items), func(i, j int) { items[i], items[j] = items[j], items[i] })
	return items[:least+s.rng.IntN(len(items)-least+1)]
}

func (s *script) event() core.Event {
	id := s.newID(eventID)
	s.events = append(s.events, id)
	e := core.Event{
		ID: id, Type: pick(s, []string{"placed", "placed", "placed", "paid", "shipped", "odd"}),
		Aggregate: pick(s, s.aggregates),
		Payload: fmt.Appendf(nil, `{"eventId": %q, "data": {"a":1,"a":%d}, "pad": %q}`, id, s.rng.IntN(9),
			strings.Repeat("x", s.rng.IntN(300))),
	}
	if s.chance(25) {
		e.Headers = []byte(`{"traceparent" : "00-1"}`)
	}
	if s.chance(20) {
		e.Tenant = "acme"
		if s.chance(50) {
			e.DedupeKey = fmt.Sprintf("acme/%s", id)
		}
	}
	return e
}

func (s *script) someEvents(most int) []core.Event {
	var events []core.Event
	for range 1 + s.rng.IntN(most) {
		events = append(events, s.event())
	}
	return events
}

// pickTx returns an open transaction.
func (s *script) pickTx() (int, bool) {
	if len(s.open) == 0 {
		return 0, false
	}
	return pick(s, s.open), true
}

func (s *script) begin() *step {
	if len(s.open) == most {
		return nil
	}
	s.open = append(s.open, s.begun)
	s.begun++
	return &step{what: s.begun - 1, do: func(ctx context.Context, side side) ([]string, error) {
		return nil, side.begin(ctx)
	}}
}

// writing is a step that writes; the numbers it drew are its answer.
func (s *script) writing(tx int, w write) *step {
	s.wrote[tx] = s.wrote[tx] || len(w.events) > 0 && !w.undo
	if w.seq == 0 {
		s.last += int64(max(len(w.events), 1))
	}
	return &step{
		what: fmt.Sprintf("tx %d %s", tx, printed(w)),
		do: func(ctx context.Context, side side) ([]string, error) {
			numbers, err := side.write(ctx, tx, w)
			return []string{fmt.Sprint(numbers)}, err
		},
	}
}

// printed says what a write does without its payloads.
func printed(w write) string {
	var events []string
	for _, e := range w.events {
		events = append(events, fmt.Sprintf("%s %s of %s", e.ID, e.Type, e.Aggregate.ID))
	}
	return fmt.Sprintf("draw %v seq %d undo %v %v", w.draw, w.seq, w.undo, events)
}

func (s *script) emit() *step {
	tx, ok := s.pickTx()
	if !ok {
		return nil
	}
	return s.writing(tx, write{events: s.someEvents(3)})
}

func (s *script) draw() *step {
	tx, ok := s.pickTx()
	if !ok {
		return nil
	}
	step := s.writing(tx, write{draw: true})
	s.drawn[tx] = append(s.drawn[tx], s.last)
	return step
}

func (s *script) emitDrawn() *step {
	tx, ok := s.pickTx()
	if !ok || len(s.drawn[tx]) == 0 {
		return nil
	}
	seq := s.drawn[tx][0]
	s.drawn[tx] = s.drawn[tx][1:]
	return s.writing(tx, write{seq: seq, events: s.someEvents(1)})
}

func (s *script) undo() *step {
	tx, ok := s.pickTx()
	if !ok {
		return nil
	}
	return s.writing(tx, write{undo: true, events: s.someEvents(2)})
}

func (s *script) commit() *step   { return s.end(true) }
func (s *script) rollback() *step { return s.end(false) }

func (s *script) end(commit bool) *step {
	tx, ok := s.pickTx()
	if !ok || !s.wrote[tx] && s.chance(80) {
		return nil
	}
	s.open = slices.DeleteFunc(s.open, func(open int) bool { return open == tx })
	return &step{what: fmt.Sprintf("tx %d", tx), do: func(ctx context.Context, side side) ([]string, error) {
		return nil, side.end(ctx, tx, commit)
	}}
}

// visible are the committed rows in one of these states; all of them if none is named.
func (s *script) visible(states ...core.State) []memstore.EventRow {
	rows := s.model.mem.Events()
	if len(states) == 0 {
		return rows
	}
	return slices.DeleteFunc(rows, func(r memstore.EventRow) bool { return !slices.Contains(states, r.State) })
}

// far is a delay that no test runs to the end of.
const far = 1000 * time.Hour

// apart is how far requests at the lowest rate are due from each other: no test runs for half of it.
const apart = 1000 * time.Second
