package sim

import (
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/relay/internal/core"
)

// Figure is something that a scenario measured.
type Figure struct {
	Name  string
	Value int64
	OK    bool // as it must be
}

// Scenario is one long run in simulated time.
type Scenario struct {
	Name string
	// Run tells it, in a smaller form if asked to.
	Run func(short bool) []Figure
}

// Scenarios returns all of them.
func Scenarios() []Scenario {
	return []Scenario{
		{"outage", outageOfDays},
		{"one_bad", oneBadEvent},
		{"timeout", eventThatHangs},
		{"registry", oldRegistry},
		{"deploy", badDeploy},
		{"topic", oneTopicDown},
		{"rejections", topicThatRejects},
		{"rejected", manyBadEvents},
		{"crowd", crowdOfBadEvents},
		{"paused", pausedFleet},
		{"limited", limitedFleet},
		{"forgotten", forgottenCopies},
		{"uneven", unevenTopics},
		{"herd", herdAfterOutage},
		{"bells", manyBells},
		{"asleep", bellAtNight},
	}
}

func exactly(name string, value, want int64) Figure { return Figure{name, value, value == want} }
func atMost(name string, value, most int64) Figure  { return Figure{name, value, value <= most} }
func atLeast(name string, value, least int64) Figure {
	return Figure{name, value, value >= least}
}

// bulk commits events in transactions of a hundred, each for the next aggregate.
func (sim *Simulation) bulk(n int, kindOf func(i int) *kind) []core.Event {
	events := make([]core.Event, 0, n)
	for begin := 0; begin < n; begin += 100 {
		tx := sim.store.Begin()
		record := check.Tx{Key: sim.newKey(), Outcome: check.OK}
		for i := begin; i < min(begin+100, n); i++ {
			k := kindOf(i)
			aggregate := int(sim.emitted) % sim.plan.aggregates
			event := sim.newEvent(k, aggregate, 40)
			if _, err := tx.Emit(event); err != nil {
				sim.problemf("emit: %v", err)
			}
			sim.versions[aggregate]++
			record.Events = append(record.Events, emitted(&event, k.Topic, sim.versions[aggregate]))
			events = append(events, event)
		}
		if err := tx.Commit(); err != nil {
			sim.problemf("commit: %v", err)
		}
		sim.record.checker.Add(check.Record{Tx: &record})
	}
	return events
}

// load commits events at a steady pace, until then.
func (sim *Simulation) load(pace time.Duration, until time.Duration, kindOf func(i int) *kind) {
	n := 0
	sim.loads++
	var next func()
	next = func() {
		sim.bulk(1, func(int) *kind { return kindOf(n) })
		n++
		if sim.now+pace < until {
			sim.after(pace, next)
		} else {
			sim.loads--
		}
	}
	sim.after(pace, next)
}

// pass lets the time pass.
func (sim *Simulation) pass(d time.Duration) { sim.run(sim.now+d, func() bool { return false }) }

// finish waits for the loads and then for the relays, stops the relays and asks the checker. It returns how much was
// wrong. A load that went on would commit events after the last relay has stopped.
func (sim *Simulation) finish(most time.Duration) (wrong int64, verdict *check.Verdict) {
	sim.healed = true
	checked := sim.now
	sim.run(sim.now+most, func() bool {
		if sim.now-checked < time.Second {
			return false
		}
		checked = sim.now
		return sim.loads == 0 && sim.store.Open() == 0
	})
	sim.leave()
	verdict = sim.record.end(true)
	for _, c := range check.Counters() {
		if c.MustBeZero() {
			wrong += int64(verdict.Count(c))
		}
	}
	for _, p := range verdict.Problems() {
		sim.logf("%s", p)
		sim.problems = append(sim.problems, p.String())
	}
	return wrong + int64(len(sim.problems)), verdict
}

// spent sums up the attempts that were charged.
func (sim *Simulation) spent() (attempts int64) {
	for _, row := range sim.store.Events() {
		attempts += int64(row.Attempts)
	}
	return attempts
}

// breakTopic puts a topic out of order until then, and writes it down for the checker.
func (sim *Simulation) breakTopic(topic string, until time.Duration, hangs bool) {
	sim.broker.topics[topic] = &outage{until: until, hangs: hangs}
	from := sim.now + sim.plan.config.Deadline + sim.broker.latency
	sim.record.fault(check.Fault{Kind: check.BrokerDown, Topic: topic, From: at(from), To: at(until)})
}
