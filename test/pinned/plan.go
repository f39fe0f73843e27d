package pinned

import "time"

// Plan is what a run does.
type Plan struct {
	URL string // of the server

	Rate       int // events a second
	PerTx      int // events of one transaction
	Aggregates int
	Workers    int // producers, each with a connection
	// Settle is how long the load runs before it is measured, Length how long it is measured.
	Settle, Length time.Duration
	// Control is the same for the run without a watermark.
	Control time.Duration
	// Dead is how many dead tuples are made under every pin before the load begins.
	Dead int
	// Drain is how long the relay may take for what is left.
	Drain time.Duration
}

// Short makes the dead tuples of half an hour beforehand.
func Short() Plan {
	return Plan{
		Rate: 3000, PerTx: 10, Aggregates: 10_000, Workers: 12, Settle: 5 * time.Second, Length: time.Minute, Control: 20 * time.Second,
		Dead: 1_000_000, Drain: 20 * time.Second,
	}
}

// Long lets them come by themselves.
func Long() Plan {
	p := Short()
	p.Dead, p.Length, p.Control = 0, 30*time.Minute, 10*time.Minute
	return p
}

func (p Plan) transactions(length time.Duration) int {
	return int(float64(p.Rate) * length.Seconds() / float64(p.PerTx))
}
