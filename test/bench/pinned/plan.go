package pinned

import "time"

// Plan is what a run does.
type Plan struct {
	URL string // of the server

	Rate       int // events per second, if the machine can do more than twice that
	PerTx      int // events of one transaction
	Aggregates int
	Workers    int // producers, each with a connection
	// Settle is how long the load runs before it is measured, Length how long it is measured.
	Settle, Length time.Duration
	// Control is the same for the run without a watermark.
	Control time.Duration
	// Dead is how many dead tuples are made under every pin before the load begins.
	Dead int
	// Beats is how many beats each relay of a day has, DayRounds how often that is compared with none. 0: there is no day.
	Beats, DayRounds int
	// Drain is how long the relay may take for what is left. It ends a run that hangs.
	Drain time.Duration
	// Timed tells that rates and latencies decide too: the stretches are long enough for it.
	Timed bool
}

// Full makes the dead tuples of half an hour beforehand.
func Full() Plan {
	return Plan{
		Rate: 3000, PerTx: 10, Aggregates: 10_000, Workers: 12,
		Settle: 5 * time.Second, Length: time.Minute, Control: 20 * time.Second, Dead: 1_000_000, Drain: hung, Timed: true,
		Beats: BeatsOfADay, DayRounds: 10,
	}
}

// Short is the form for every day. What decides is how many pages a read looks at, which no other load changes. What
// has died since the last watermark is among them, so the rate is low.
func Short() Plan {
	p := Full()
	p.Rate, p.Dead, p.Timed = 1000, 50_000, false
	p.Settle, p.Length, p.Control = time.Second, 3*time.Second, 3*time.Second
	p.Beats, p.DayRounds = 500, 2 // dead beats are counted as well, and 4,000 are enough to be seen
	return p
}

// Long lets the dead tuples come by themselves.
func Long() Plan {
	p := Full()
	p.Dead, p.Length, p.Control = 0, 30*time.Minute, 10*time.Minute
	return p
}

// The machine's part of the plan: a load of less than half of what it can do, for as long as enough events take.
const (
	share     = 0.4
	minEvents = 300
)

// On is the plan for a machine that can move so many events per second.
func (p Plan) On(capacity float64) Plan {
	p.Rate = min(p.Rate, max(p.PerTx, int(share*capacity)))
	least := time.Duration(minEvents) * time.Second / time.Duration(p.Rate)
	p.Length, p.Control = max(p.Length, least), max(p.Control, least)
	return p
}

// hung is how long something may take that takes seconds: after that it hangs.
const hung = 3 * time.Minute

func (p Plan) transactions(length time.Duration) int {
	return int(float64(p.Rate) * length.Seconds() / float64(p.PerTx))
}
