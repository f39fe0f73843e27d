package publisher

import (
	"fmt"
	"io"
	"time"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/figures"
)

// Half is what was found with one broker.
type Half struct {
	Broker  string
	plan    Plan
	Verdict *check.Verdict
	// Waiting events had piled up after Outage; DrainTime is how long they took, if they Drained.
	Waiting   int
	Outage    time.Duration
	Drained   bool
	DrainTime time.Duration
	// Steady events were written when all was well again, and as many messages must have SteadyArrived. SteadyTime is how
	// long they took from the first that was written to the last that was published, which tells how fast the machine
	// is.
	Steady, SteadyArrived int
	SteadyTime            time.Duration
	// Dead and Charged count events, of which there must be none.
	Dead, Charged int
	// Interrupted is how many transactions of producers the database's restarts broke.
	Interrupted int
	// Stood is how often events did not flow again in time after a restart.
	Stood int
	// Probed is how often the probes were asked, and LiveFailed what /livez answered when it was not well.
	Probed     int
	LiveFailed []string
	// ReadyInOutage and NotReady are answers of /readyz in the second half of the outage.
	ReadyInOutage, NotReady int
	ReadyAgain              bool
	// SurvivedAsOne: the process that was started is the one that was stopped in the end.
	SurvivedAsOne bool
	Stop          time.Duration
	ExitCode      int
	KeptLanes     int
	Seconds       float64
}

// NewHalf is an empty report.
func NewHalf(broker string, plan Plan) *Half { return &Half{Broker: broker, plan: plan} }

// slower is how many times longer an event may take of those that piled up than one of those that nothing happened to.
const slower = 10

// DrainLimit is how long the events that have piled up may take: what the plan says, or so many times longer than as
// many take when all is well, where that is more.
func (h *Half) DrainLimit() time.Duration {
	if h.Steady == 0 {
		return h.plan.Drain
	}
	return max(h.plan.Drain, slower*h.SteadyTime*time.Duration(h.Waiting)/time.Duration(h.Steady))
}

// Problems are what was broken and what was tested too little, a sentence each.
func (h *Half) Problems() []string {
	var list []string
	is := func(broken bool, format string, args ...any) {
		if broken {
			list = append(list, h.Broker+": "+fmt.Sprintf(format, args...))
		}
	}
	for _, p := range h.Verdict.Problems() {
		is(true, "%s", p)
	}
	for _, s := range h.Verdict.TooLittle {
		is(true, "%s", s)
	}
	is(!h.SurvivedAsOne, "the process did not survive: it ended by itself with exit code %d", h.ExitCode)
	is(h.Dead > 0, "%d events are dead", h.Dead)
	is(h.Charged > 0, "%d events were charged for what was not their fault", h.Charged)
	is(!h.Drained, "it did not drain: nothing moved for %s, or nobody was left", h.plan.Patience)
	is(h.Drained && h.DrainTime > h.DrainLimit(), "it took %s to drain, at most %s is allowed",
		h.DrainTime.Round(time.Millisecond), h.DrainLimit())
	is(h.Drained && h.SteadyArrived != h.Steady, "of %d events that nothing happened to, %d messages arrived", h.Steady,
		h.SteadyArrived)
	is(h.Drained && h.Steady < steadyEvents, "too little was tested: %d events were written when all was well again",
		h.Steady)
	is(h.Stood > 0, "events did not flow again within %s, %d times", h.plan.Patience, h.Stood)
	is(len(h.LiveFailed) > 0, "/livez failed %d times, first with %q", len(h.LiveFailed), first(h.LiveFailed))
	is(h.ReadyInOutage > 0, "/readyz said ready %d times in the middle of the outage", h.ReadyInOutage)
	is(h.NotReady == 0, "too little was tested: /readyz was never asked during the outage")
	is(h.Drained && !h.ReadyAgain, "it is not ready again")
	is(h.Probed < int(h.plan.Outage.Seconds()), "too little was tested: the probes were asked %d times", h.Probed)
	is(h.Waiting < h.plan.Waiting, "too little was tested: %d events waited for the broker, at least %d must", h.Waiting,
		h.plan.Waiting)
	is(h.Outage < h.plan.Outage, "too little was tested: the outage was %s", h.Outage)
	is(h.Interrupted == 0, "too little was tested: no producer noticed the database's restarts")
	is(h.SurvivedAsOne && (h.ExitCode != 0 || h.Stop > stopTime), "the stop took %s and ended with exit code %d",
		h.Stop.Round(time.Millisecond), h.ExitCode)
	is(h.SurvivedAsOne && h.KeptLanes > 0, "it kept %d lanes when it stopped", h.KeptLanes)
	return list
}

func first(list []string) string {
	if len(list) == 0 {
		return ""
	}
	return list[0]
}

// Print writes the problems of all and the last line. It tells whether there were none.
func Print(to io.Writer, walks []*Walked, halves ...*Half) (ok bool, err error) {
	line := figures.New("proof-publisher")
	var problems []string
	steps := 0
	for _, walk := range walks {
		problems = append(problems, walk.Problems...)
		steps += walk.Steps
	}
	line.Addf("first_steps", "%d", steps)
	for _, walk := range walks {
		line.Addf(walk.Name+"_event_ms", "%d", walk.Delivered.Milliseconds())
	}
	sums := map[check.Counter]int{}
	events, restarts := 0, 0
	for _, h := range halves {
		problems = append(problems, h.Problems()...)
		for _, c := range check.Counters() {
			sums[c] += h.Verdict.Count(c)
		}
		events += h.Verdict.Count(check.Committed)
		restarts += h.Verdict.Faults[check.DatabaseDown] + h.Verdict.Faults[check.BrokerDown]
	}
	line.Addf("brokers", "%d", len(halves))
	line.Addf("events", "%d", events)
	line.Addf("restarts", "%d", restarts)
	for _, h := range halves {
		line.Addf(h.Broker+"_outage_seconds", "%.0f", h.Outage.Seconds())
		line.Addf(h.Broker+"_waiting", "%d", h.Waiting)
		line.Addf(h.Broker+"_drain_seconds", "%.1f", h.DrainTime.Seconds())
		line.Addf(h.Broker+"_stop_ms", "%d", h.Stop.Milliseconds())
	}
	total := func(name string, of func(*Half) int) {
		sum := 0
		for _, h := range halves {
			sum += of(h)
		}
		line.Addf(name, "%d", sum)
	}
	total("not_ready", func(h *Half) int { return h.NotReady })
	total("interrupted", func(h *Half) int { return h.Interrupted })
	total("process_restarts", func(h *Half) int { return map[bool]int{false: 1}[h.SurvivedAsOne] })
	total("livez_failed", func(h *Half) int { return len(h.LiveFailed) })
	total("dead", func(h *Half) int { return h.Dead })
	total("charged", func(h *Half) int { return h.Charged })
	total("calm_copies", func(h *Half) int { return h.SteadyArrived - h.Steady })
	line.Addf("duplicates", "%d", sums[check.Duplicates])
	for _, zero := range check.Zeros() {
		line.Addf(zero.Name, "%d", sums[zero.Of])
	}
	total("seconds", func(h *Half) int { return int(h.Seconds) })
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "BROKEN:", problem) // the last line tells
	}
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintln(to, line); err != nil {
		return false, fmt.Errorf("publisher: print: %w", err)
	}
	return len(problems) == 0, nil
}
