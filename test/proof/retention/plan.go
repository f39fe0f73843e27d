package retention

import "time"

// Plan says how much is deleted, under which load, and for how long it is measured.
type Plan struct {
	URL string // a server, as a role that may create databases
	// Rows are the published events that retention has to delete, an equal part in each pair.
	Rows int
	// Pairs of stretches are measured, one with retention and one without; each lasts Length, after Settle. Where times
	// decide and they cannot yet, because the load was not held or stretches that are alike lie too far apart, there
	// are more, up to MostPairs.
	Pairs, MostPairs int
	Length, Settle   time.Duration
	// Rate is in events per second, PerTx of them in a transaction, from Workers producers. Each does one transaction at a
	// time, and whoever is behind hurries: there are enough of them to keep the rate also when a commit takes 50 ms.
	Rate, PerTx, Workers, Aggregates int
	// Batch and Pause are retention's; zero: its defaults.
	Batch int
	Pause time.Duration
	// Drain is how long the last events may take. It ends a run that hangs.
	Drain time.Duration
	// SlowestDelete bounds every statement of retention's, where times decide.
	SlowestDelete time.Duration
	// MaxRatio bounds the p99 with retention, as a multiple of the one without. Zero: times decide nothing, because
	// the stretches are too short for it.
	MaxRatio float64
}

// Long is the full form: a million rows, and five pairs of minutes.
func Long() Plan {
	return Plan{
		Rows: 1_000_000, Pairs: 5, MostPairs: 15, Length: time.Minute, Settle: 3 * time.Second,
		Rate: 1_000, PerTx: 2, Workers: 32, Aggregates: 2_000,
		Drain: 5 * time.Minute, SlowestDelete: 2 * time.Second, MaxRatio: 1.5,
	}
}

// Short is the form for every day: counts decide. What is due in a pair is few enough for retention to believe it,
// however little was published meanwhile.
func Short() Plan {
	p := Long()
	p.Rows, p.Pairs, p.MostPairs, p.Pause, p.MaxRatio = 45_000, 5, 5, 100*time.Millisecond, 0
	p.Length, p.Settle = 1500*time.Millisecond, 300*time.Millisecond
	return p
}

func (p Plan) perPair() int { return p.Rows / p.Pairs }

// batch is how many rows a statement may delete.
func (p Plan) batch() int64 {
	if p.Batch > 0 {
		return int64(p.Batch)
	}
	return 1_000 // retention's own default
}

// unsettled is how many old events are not settled, and requested how many shall be delivered again.
const (
	unsettled = 100
	requested = 10
)

const day = 24 * time.Hour

// age is how long ago the rows of a pair were published. What is due grows by two days from pair to pair: no more
// than retention believes.
func (p Plan) age(pair int) time.Duration { return 40*day + 2*day*time.Duration(p.Pairs-pair) }

// behind is the number behind which a pair has its rows. The lowest are of what is not settled.
func (p Plan) behind(pair int) int64 {
	if pair == 0 {
		return 10 * unsettled
	}
	return 10*unsettled + requested + int64(pair)*int64(p.perPair())
}

// window is how long retention keeps events in this pair: its rows are older, those of the next pair are not.
func (p Plan) window(pair int) time.Duration { return p.age(pair) - day }

// with tells whether a stretch has retention. The order within a pair changes from pair to pair.
func with(stretch int) bool { return stretch%2 == stretch/2%2 }
