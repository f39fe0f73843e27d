package ops

import "time"

// Plan says how much there is to repair, under which load, and what decides.
type Plan struct {
	URL        string // a server, as a role that may create databases and roles
	Folder     string // of what the processes are told and what they say
	Executable string // is started with "live" and a file, and dies where it is told

	// Dead are the dead letters, of so many aggregates. One aggregate in BlockedEvery has its last one blocking, with
	// Followers events that wait behind it and as many that come while the job runs.
	Dead, Aggregates, BlockedEvery, Followers int
	// JobRate is in events per second, of each job.
	JobRate float64
	// LiveRate is in events per second, from Workers producers.
	LiveRate, Workers, Things int
	// Control is how long each of the two stretches before lasts.
	Control time.Duration
	// Linger is how long nothing may happen where nothing shall. Workers look for something to do every two seconds.
	Linger time.Duration
	// Patience is for how long nothing may move while something is left. It ends a run that hangs.
	Patience time.Duration
	// EndLeases has the lease of a killed worker be over at once. Otherwise the next one waits for it.
	EndLeases bool
	// TimesDecide has the latency of live events decide.
	TimesDecide bool
}

// Long is the full form.
func Long() Plan {
	return Plan{
		Dead: 100_000, Aggregates: 5_000, BlockedEvery: 5, Followers: 2, JobRate: 400, LiveRate: 500, Workers: 32,
		Things: 2_000, Control: time.Minute, Linger: 6 * time.Second, Patience: 5 * time.Minute,
		TimesDecide: true,
	}
}

// Short is the form for every day: counts decide.
func Short() Plan {
	p := Long()
	p.Dead, p.Aggregates, p.LiveRate, p.Workers = 4_000, 200, 100, 8
	p.Control, p.Linger, p.EndLeases, p.TimesDecide = time.Second, 2500*time.Millisecond, true, false
	return p
}

// blocked tells whether an aggregate has a dead event that blocks.
func (p Plan) blocked(aggregate int) bool { return aggregate%p.BlockedEvery == 0 }

// followers is how many events wait behind dead ones, and come there.
func (p Plan) followers() int {
	return 2 * p.Followers * ((p.Aggregates + p.BlockedEvery - 1) / p.BlockedEvery)
}

// part is how many events a job with the rate has in one part: a tenth of a second of it, and 500 at the most.
func (p Plan) part() int { return int(min(max(1, p.JobRate/10), 500)) }

// The most that live events may feel: the median and the 99th percentile, as multiples of those before.
const (
	maxP50 = 1.3
	maxP99 = 1.5
)

// leastKills is how often the worker of each job must have been killed.
const leastKills = 3
