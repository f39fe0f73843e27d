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

// Simulation is one simulated run.
type Simulation struct {
	plan   *plan
	mutant Mutant
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
	standbyLags bool          // a standby lags, and will be promoted
	downUntil   time.Duration // no call reaches the database before
	broker      broker
	record      recorder

	relays     []*relayProcess      // in the order of their starts
	owners     map[outbox.ID]string // the relay that has, or had, this id
	born       int
	standbyFor *relayProcess
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
	limits         map[string]*limitWatch // by topic, what all relays send
	limited        int                    // publishes that kept to one
	takesLost      int                    // takes of requests whose answer their relay never got
	losing         core.Op                // the answers to calls of this kind are lost; empty: none are
	belated        core.Op                // calls of this kind are done after they were given up
	shaken         time.Duration          // when two relays may have come to hold one lane; 0: never
	problems       []string
	stopped        bool // nothing more is to be done
}

// epoch is zero of the simulated time.
var epoch = time.Unix(1_700_000_000, 0).UTC()

// start is when a simulation begins, so that no instant is zero.
const start = time.Hour

// newSimulation makes the simulation of a plan, in which nothing happens yet.
func newSimulation(p *plan, mutant Mutant, trace io.Writer) *Simulation {
	sim := &Simulation{
		plan: p, mutant: mutant, trace: trace, now: start, rand: rand.New(rand.NewPCG(p.seed, 0x51)),
		locks: make([]lock, p.aggregates), versions: make([]uint64, p.aggregates), incarnation: 1,
		owners: map[outbox.ID]string{}, limits: map[string]*limitWatch{}, shaken: -time.Hour,
	}
	sim.record = newRecorder(sim)
	sim.broker = newBroker(sim)
	sim.store = memstore.New(memstore.Config{
		Lanes: p.lanes, Lane: sim.laneOf, Clock: func() time.Duration { return sim.now + sim.offset },
		Epoch: epoch, Next: sim.record.next, Incarnation: mutant.Incarnation,
	})
	return sim
}

// laneOf spreads aggregates over the lanes; with few lanes several share one.
func (sim *Simulation) laneOf(a core.Aggregate) int16 {
	hash := uint32(2166136261)
	for _, c := range []byte(a.ID) {
		hash = (hash ^ uint32(c)) * 16777619
	}
	return int16(hash % uint32(sim.plan.lanes))
}

func (sim *Simulation) logf(format string, args ...any) {
	if sim.trace != nil {
		fmt.Fprintf(sim.trace, "%12.6f "+format+"\n", append([]any{(sim.now - start).Seconds()}, args...)...)
	}
}

func (sim *Simulation) problemf(format string, args ...any) {
	text := fmt.Sprintf(format, args...)
	sim.logf("PROBLEM %s", text)
	if len(sim.problems) < 20 {
		sim.problems = append(sim.problems, text)
	}
}

// after plans something that is a step.
func (sim *Simulation) after(delay time.Duration, do func()) {
	sim.queue.plan(sim.now+delay, func() bool { do(); return true })
}

func (sim *Simulation) chance(p float64) bool { return p > 0 && sim.rand.Float64() < p }

func (sim *Simulation) span(least, most time.Duration) time.Duration {
	return span(sim.rand, least, most)
}

// soon is a duration around the mean, as waiting times are.
func (sim *Simulation) soon(mean time.Duration) time.Duration {
	return time.Duration(-math.Log(1-sim.rand.Float64()) * float64(mean))
}

// hit counts a fault if it is to happen now.
func (sim *Simulation) hit(f Fault) bool {
	if sim.healed || !sim.chance(sim.plan.rate[f]) {
		return false
	}
	sim.count(f)
	return true
}

func (sim *Simulation) count(f Fault) {
	sim.tally[f]++
	sim.logf("FAULT %s", f)
}

// ranAt is when the call was run whose answer the core is being told.
func (sim *Simulation) ranAt() time.Duration {
	if sim.ran != 0 {
		return sim.ran
	}
	return sim.now
}

func (sim *Simulation) newID() outbox.ID {
	sim.emitted++
	var id outbox.ID
	ms := uint64(sim.now/time.Millisecond) + 1_700_000_000_000
	for i := range 6 {
		id[i] = byte(ms >> (40 - 8*i))
	}
	id[6], id[8] = 0x70, 0x80
	for i := range 7 {
		id[9+i] = byte(sim.emitted >> (48 - 8*i))
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
func (sim *Simulation) run(until time.Duration, done func() bool) bool {
	same := 0
	for !done() {
		m, planned := sim.queue.next()
		if !planned {
			return false
		}
		if m.at > until {
			sim.queue.plan(m.at, m.do)
			sim.now = until
			return false
		}
		if same++; m.at > sim.now {
			same = 0
		}
		if same > spinning {
			sim.problemf("more than %d steps happened at one instant: something spins", spinning)
			return false
		}
		sim.now = m.at
		if m.do() {
			sim.steps++
			if sim.record.changes() {
				sim.quietFrom = sim.now
			}
		}
	}
	return true
}
