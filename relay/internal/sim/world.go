package sim

import (
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"time"

	"github.com/posthaste-dev/posthaste/outbox"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
	"github.com/posthaste-dev/posthaste/relay/internal/memstore"
)

// World is one simulated run.
type World struct {
	plan   *plan
	plant  Plant
	rand   *rand.Rand
	queue  queue
	now    time.Duration
	offset time.Duration // of the database's clock
	ran    time.Duration // when the call was run whose answer is told now; 0: none is
	steps  int
	tally  Tally
	trace  io.Writer

	store       *memstore.Store
	incarnation int
	behind      bool          // a standby is, and will be promoted
	downUntil   time.Duration // no call reaches the database before
	broker      broker
	record      recorder

	lives      []*life // of relays, in the order of their births
	born       int
	standbyFor *life
	standbyEnd time.Duration

	locks        []lock // of the aggregates
	versions     []uint64
	emitted      uint64
	transactions int
	producing    bool
	writing      int // transactions
	// committedAsync is when a transaction last committed without waiting for the disk; 0: never.
	committedAsync time.Duration
	healed         bool
	loads          int // under way
	quietFrom      time.Duration
	problems       []string
	stopped        bool // nothing more is to be done
}

// start is when a world begins, so that no instant is zero.
const start = time.Hour

// newWorld makes the world of a plan, in which nothing happens yet.
func newWorld(p *plan, plant Plant, trace io.Writer) *World {
	w := &World{
		plan: p, plant: plant, trace: trace, now: start, rand: rand.New(rand.NewPCG(p.seed, 0x51)),
		locks: make([]lock, p.aggregates), versions: make([]uint64, p.aggregates), incarnation: 1,
	}
	w.record = newRecorder(w)
	w.broker = newBroker(w)
	w.store = memstore.New(memstore.Config{
		Lanes: p.lanes, Lane: w.laneOf, Clock: func() time.Duration { return w.now + w.offset },
		Epoch: time.Unix(1_700_000_000, 0).UTC(), Next: w.record.next, Incarnation: plant.Incarnation,
	})
	return w
}

// laneOf spreads aggregates over the lanes; with few lanes several share one.
func (w *World) laneOf(a core.Aggregate) int16 {
	hash := uint32(2166136261)
	for _, c := range []byte(a.ID) {
		hash = (hash ^ uint32(c)) * 16777619
	}
	return int16(hash % uint32(w.plan.lanes))
}

func (w *World) logf(format string, args ...any) {
	if w.trace != nil {
		fmt.Fprintf(w.trace, "%12.6f "+format+"\n", append([]any{(w.now - start).Seconds()}, args...)...)
	}
}

func (w *World) problemf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	w.logf("PROBLEM %s", text)
	if len(w.problems) < 20 {
		w.problems = append(w.problems, text)
	}
}

// after plans something that is a step.
func (w *World) after(delay time.Duration, do func()) {
	w.queue.plan(w.now+delay, func() bool { do(); return true })
}

func (w *World) chance(p float64) bool { return p > 0 && w.rand.Float64() < p }

func (w *World) span(least, most time.Duration) time.Duration { return span(w.rand, least, most) }

// soon is a duration around the mean, as waiting times are.
func (w *World) soon(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-w.rand.Float64()) * float64(mean))
}

// hit counts a fault if it is to happen now.
func (w *World) hit(f Fault) bool {
	if w.healed || !w.chance(w.plan.rate[f]) {
		return false
	}
	w.count(f)
	return true
}

func (w *World) count(f Fault) {
	w.tally[f]++
	w.logf("FAULT %s", f)
}

// ranAt is when the call was run whose answer the core is being told.
func (w *World) ranAt() time.Duration {
	if w.ran != 0 {
		return w.ran
	}
	return w.now
}

func (w *World) newID() outbox.ID {
	w.emitted++
	var id outbox.ID
	ms := uint64(w.now/time.Millisecond) + 1_700_000_000_000
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[8] = 0x70, 0x80
	for i := range 7 {
		id[9+i] = byte(w.emitted >> (48 - 8*i))
	}
	return id
}

func short(id outbox.ID) string {
	if id == (outbox.ID{}) {
		return "-"
	}
	n := uint64(0)
	for _, b := range id[9:] {
		n = n<<8 | uint64(b)
	}
	return fmt.Sprintf("e%d", n)
}

// spinning is how many steps at one instant are too many.
const spinning = 100_000

// run handles moments until the condition holds or nothing is left. It returns false when the time was up.
func (w *World) run(until time.Duration, done func() bool) bool {
	same := 0
	for !done() {
		m, planned := w.queue.next()
		if !planned {
			return false
		}
		if m.at > until {
			w.queue.plan(m.at, m.do)
			w.now = until
			return false
		}
		if same++; m.at > w.now {
			same = 0
		}
		if same > spinning {
			w.problemf("more than %d steps happened at one instant: something spins", spinning)
			return false
		}
		w.now = m.at
		if m.do() {
			w.steps++
			if w.record.changes() {
				w.quietFrom = w.now
			}
		}
	}
	return true
}
