package sim

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// kind is an event type of the plan.
type kind struct {
	core.Route
	name string
	// new tells that relays with the old registry do not know it, unknown that nobody does.
	new, unknown bool
}

// ending is what operators do with dead events that block others when the faults are over.
type ending int

const (
	redriveAll ending = iota
	skipAll
	leaveAll
)

// plan is everything about a simulation that is decided before it begins.
type plan struct {
	seed  uint64
	steps int // the least number before the faults end
	time  time.Duration

	lanes        int
	aggregates   int
	unserialised int // of the aggregates: their writers do not exclude one another
	kinds        []kind
	topics       []string
	relays       int
	old          int // of the relays: those with the old registry
	producers    int
	pace         time.Duration  // between a producer's transactions
	async        float64        // commits that do not wait for the disk
	config       core.Config    // but for the relay's name and registry
	depths       map[string]int // of the topics whose broker keeps pipelined order
	ending       ending
	pooled       bool // relays reach the database through a pooler: no call of theirs fails when the server is another one

	rate   [Faults]float64       // a call, or a publish
	every  [Faults]time.Duration // on average, for those that happen at a time
	poison int                   // events that kill
	hasty  float64               // deaths after which an operator acts at once
	copies time.Duration         // between requests to deliver again, on average; zero: nobody asks
	limits time.Duration         // between limits of topics, on average; zero: nobody sets one

	// The link to the database is slow, also when the faults are over: answers of reads with more than so many rows or
	// bytes time out. Zero: it is not.
	mostRows, mostBytes int
}

// draw makes the plan of a seed.
func draw(seed uint64, steps int) *plan {
	r := rand.New(rand.NewPCG(seed, 0x9051))
	p := &plan{
		seed: seed, steps: steps, time: span(r, 15*time.Second, 40*time.Second),
		lanes: 1 + r.IntN(8), aggregates: 1 + r.IntN(8), relays: 1 + r.IntN(4), producers: 1 + r.IntN(6),
		pace: span(r, 50*time.Millisecond, 900*time.Millisecond), ending: ending(r.IntN(3)), hasty: 0.2,
	}
	p.unserialised = r.IntN(1 + p.aggregates/3)
	if r.IntN(3) == 0 {
		p.async = 0.5
	}
	p.drawKinds(r)
	p.drawConfig(r)
	p.drawFaults(r)
	p.drawLink(rand.New(rand.NewPCG(seed, 0x51e)))
	p.drawCopies(rand.New(rand.NewPCG(seed, 0xc0b1)))
	p.drawLimits(rand.New(rand.NewPCG(seed, 0x11117)))
	return p
}

// drawLimits has topics limited, in every fourth seed. Those that once failed are as they were.
func (p *plan) drawLimits(r *rand.Rand) {
	if r.IntN(4) == 0 && !slices.Contains(FailedOnce(), p.seed) {
		p.limits = span(r, 3*time.Second, 10*time.Second)
	}
}

// drawCopies has events delivered again, in every third seed. Those that once failed are as they were.
func (p *plan) drawCopies(r *rand.Rand) {
	if r.IntN(3) == 0 && !slices.Contains(FailedOnce(), p.seed) {
		p.copies = span(r, time.Second, 5*time.Second)
	}
}

// drawLink makes the link to the database slow, in one seed of five. It lets through at least one row, of which none is
// larger than a kilobyte.
func (p *plan) drawLink(r *rand.Rand) {
	switch r.IntN(10) {
	case 0:
		p.mostRows = 1 + r.IntN(20)
	case 1:
		p.mostBytes = 1024 << r.IntN(5)
	}
}

func (p *plan) drawKinds(r *rand.Rand) {
	for i := range 1 + r.IntN(3) {
		p.topics = append(p.topics, fmt.Sprintf("topic-%d", i))
	}
	for i := range 1 + r.IntN(5) {
		p.kinds = append(p.kinds, kind{name: fmt.Sprintf("type-%d", i), Route: core.Route{
			Topic: p.topics[r.IntN(len(p.topics))], Block: r.IntN(2) == 0, MaxAttempts: []int{0, 0, 1, 3}[r.IntN(4)],
		}})
	}
	if p.relays > 1 && r.IntN(3) == 0 {
		p.old = 1 + r.IntN(p.relays-1)
		p.kinds[r.IntN(len(p.kinds))].new = true
	}
	if r.IntN(8) == 0 {
		p.kinds = append(p.kinds, kind{name: "type-nobody-knows", Route: core.Route{Topic: p.topics[0]}, unknown: true})
	}
}

func (p *plan) drawConfig(r *rand.Rand) {
	lease := span(r, 2*time.Second, 6*time.Second)
	batch := 2 + r.IntN(40)
	p.config = core.Config{
		Version: "sim", Batch: batch, MaxInFlight: batch * (1 + r.IntN(4)), MaxBytes: 2048 << r.IntN(8),
		Concurrency: 1 + r.IntN(16), Depth: p.depth,
		MinPoll: span(r, 5*time.Millisecond, 50*time.Millisecond), Poll: span(r, 100*time.Millisecond, lease/3),
		FencePeriod: span(r, 100*time.Millisecond, 500*time.Millisecond),
		HeldPeriod:  span(r, 200*time.Millisecond, time.Second),
		SweepPeriod: span(r, time.Second, 5*time.Second), Lease: lease, Deadline: span(r, lease/6, lease/3),
		Margin: lease / 20,
		Drain:  span(r, time.Second, 4*time.Second), MinStay: span(r, time.Second, 3*time.Second), MaxAttempts: 2 + r.IntN(4),
		BaseDelay: span(r, 50*time.Millisecond, 300*time.Millisecond), MaxDelay: span(r, time.Second, 4*time.Second),
		UnknownTypeMaxAge: 24 * time.Hour,
	}
	deepest := 1
	if r.IntN(4) == 0 {
		deepest = 2 + r.IntN(6)
	}
	windows := rand.New(rand.NewPCG(p.seed, 0x317d0)) // so that nothing else depends on these
	p.config.Window = []int64{2, 10, 50, 50_000}[windows.IntN(4)]
	p.config.HeldPage = []int{1, 3, 5_000}[windows.IntN(3)]
	// Half of the worlds with a broker that keeps pipelined order have another one beside it, which does not.
	p.depths = map[string]int{copiesTopic: deepest}
	others := deepest > 1 && windows.IntN(2) == 0 && !slices.Contains(FailedOnce(), p.seed)
	for _, topic := range p.topics {
		if p.depths[topic] = deepest; others && windows.IntN(2) == 0 {
			p.depths[topic] = 1
		}
	}
}

// drawFaults picks which faults there are. One seed in ten has none.
func (p *plan) drawFaults(r *rand.Rand) {
	if r.IntN(10) == 0 {
		return
	}
	often := []float64{0.3, 1, 2}[r.IntN(3)]
	servers := rand.New(rand.NewPCG(p.seed, 0xfa11)) // so that what the other faults are does not depend on these
	p.pooled = servers.IntN(2) == 0
	for f := range Faults {
		r := r
		if f >= Failover {
			r = servers
		}
		if r.IntN(5) < 2 || f == TopicRejects && r.IntN(2) == 0 { // most seeds that once failed are without it, as they were
			continue
		}
		p.rate[f] = 0.02 * often
		p.every[f] = time.Duration(float64(span(r, 4*time.Second, 20*time.Second)) / often)
	}
	p.rate[PartOfBatch] *= 4 // batches are few
	if r.IntN(5) > 0 || p.rate[Poison] == 0 {
		return
	}
	// A lane that crashes its owner for other reasons as well says nothing about the event.
	p.poison = 1 + int(p.seed%3) // from the seed itself, so that the rest of the plan does not depend on it
	for _, f := range []Fault{
		RelayKilled, RelayPaused, LeaseLost, ClockForward, ClockBack, DatabaseRestart, StoreSlow, Standby, RelayStopped,
		Failover, BackendKilled,
	} {
		p.rate[f], p.every[f] = 0, 0
	}
}

// faultless returns a plan without faults, for a scenario to change.
func faultless(seed uint64) *plan {
	p := draw(seed, 0)
	p.rate, p.every, p.poison, p.hasty = [Faults]float64{}, [Faults]time.Duration{}, 0, 0
	p.mostRows, p.mostBytes = 0, 0
	p.lanes, p.async, p.old, p.unserialised, p.producers, p.relays, p.time = 64, 0, 0, 0, 0, 1, 0
	p.topics = []string{"topic-0"}
	p.kinds = []kind{{name: "type-0", Route: core.Route{Topic: "topic-0", Block: true}}}
	p.config.Batch, p.config.MaxInFlight, p.config.MaxBytes, p.config.Concurrency, p.depths = 500, 2000,
		64<<20, 64, nil
	p.config.Lease, p.config.Deadline, p.config.Margin, p.config.Drain = 30*time.Second, 10*time.Second, time.Second,
		20*time.Second
	p.config.MinPoll, p.config.Poll, p.config.FencePeriod, p.config.HeldPeriod = 10*time.Millisecond, 500*time.Millisecond,
		250*time.Millisecond, time.Second
	p.config.SweepPeriod, p.config.MinStay, p.config.MaxAttempts = time.Minute, 10*time.Second, 10
	p.config.BaseDelay, p.config.MaxDelay = time.Second, 5*time.Minute
	return p
}

// depth is how many events of one aggregate a relay hands over to a topic at a time.
func (p *plan) depth(topic string) int { return max(1, p.depths[topic]) }

func (p *plan) kindOf(eventType string) *kind {
	at := slices.IndexFunc(p.kinds, func(k kind) bool { return k.name == eventType })
	if at < 0 {
		return nil
	}
	return &p.kinds[at]
}

// registry is what a relay knows.
type registry struct {
	plan *plan
	old  bool
}

func (g registry) Route(eventType string) (core.Route, bool) {
	k := g.plan.kindOf(eventType)
	if k == nil || k.unknown || k.new && g.old {
		return core.Route{}, false
	}
	return k.Route, true
}

func (g registry) Types() []string {
	var types []string
	for i := range g.plan.kinds {
		if _, known := g.Route(g.plan.kinds[i].name); known {
			types = append(types, g.plan.kinds[i].name)
		}
	}
	slices.Sort(types)
	return types
}

// span returns a duration between the two.
func span(r *rand.Rand, least, most time.Duration) time.Duration {
	if most <= least {
		return least
	}
	return least + time.Duration(r.Int64N(int64(most-least)))
}
