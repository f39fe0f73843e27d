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

// Scenario is one long story in simulated time.
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
		{"paused", pausedFleet},
		{"uneven", unevenTopics},
		{"herd", herdAfterOutage},
		{"bells", bellStorm},
		{"asleep", bellAtNight},
	}
}

func exactly(name string, value, want int64) Figure { return Figure{name, value, value == want} }
func atMost(name string, value, most int64) Figure  { return Figure{name, value, value <= most} }
func atLeast(name string, value, least int64) Figure {
	return Figure{name, value, value >= least}
}

// bulk commits events in transactions of a hundred, each for the next aggregate.
func (w *World) bulk(n int, kindOf func(i int) *kind) []core.Event {
	events := make([]core.Event, 0, n)
	for begin := 0; begin < n; begin += 100 {
		tx := w.store.Begin()
		record := check.Tx{Key: w.newKey(), Outcome: check.OK}
		for i := begin; i < min(begin+100, n); i++ {
			k := kindOf(i)
			aggregate := int(w.emitted) % w.plan.aggregates
			event := w.newEvent(k, aggregate, 40)
			if _, err := tx.Emit(event); err != nil {
				w.problemf("emit: %v", err)
			}
			w.versions[aggregate]++
			record.Events = append(record.Events, emitted(&event, k.Topic, w.versions[aggregate]))
			events = append(events, event)
		}
		if err := tx.Commit(); err != nil {
			w.problemf("commit: %v", err)
		}
		w.record.checker.Add(check.Record{Tx: &record})
	}
	return events
}

// load commits events at a steady pace, until then.
func (w *World) load(pace time.Duration, until time.Duration, kindOf func(i int) *kind) {
	n := 0
	w.loads++
	var next func()
	next = func() {
		w.bulk(1, func(int) *kind { return kindOf(n) })
		n++
		if w.now+pace < until {
			w.after(pace, next)
		} else {
			w.loads--
		}
	}
	w.after(pace, next)
}

// pass lets the time pass.
func (w *World) pass(d time.Duration) { w.run(w.now+d, func() bool { return false }) }

// finish waits for the loads and then for the relays, stops the relays and asks the judge. It returns how much was wrong.
// A load that went on would commit events after the last relay has stopped.
func (w *World) finish(most time.Duration) (wrong int64, verdict *check.Verdict) {
	w.healed = true
	checked := w.now
	w.run(w.now+most, func() bool {
		if w.now-checked < time.Second {
			return false
		}
		checked = w.now
		return w.loads == 0 && w.store.Open() == 0
	})
	w.leave()
	verdict = w.record.end(true)
	for _, c := range check.Counters() {
		if c.MustBeZero() {
			wrong += int64(verdict.Count(c))
		}
	}
	for _, p := range verdict.Problems() {
		w.logf("%s", p)
		w.problems = append(w.problems, p.String())
	}
	return wrong + int64(len(w.problems)), verdict
}

// spent sums up the attempts that were charged.
func (w *World) spent() (attempts int64) {
	for _, row := range w.store.Events() {
		attempts += int64(row.Attempts)
	}
	return attempts
}

// breakTopic puts a topic out of order until then, and writes it down for the judge.
func (w *World) breakTopic(topic string, until time.Duration, hangs bool) {
	w.broker.topics[topic] = &outage{until: until, hangs: hangs}
	from := w.now + w.plan.config.Deadline + w.broker.latency
	w.record.fault(check.Fault{Kind: check.BrokerDown, Topic: topic, From: at(from), To: at(until)})
}
