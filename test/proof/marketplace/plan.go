package marketplace

import "time"

// The two places where the compliance consumer can remember what it has handled.
const (
	Postgres = "postgres"
	Redis    = "redis"
)

// Plan is how much a round does. A round is the whole marketplace with one broker and one inbox.
type Plan struct {
	// Programs is the folder of the marketplace's programs as they were built; Executable is one that can be the Pub/Sub
	// emulator, see [server.NewEmulator].
	Programs, Executable string
	// Postgres is a server on which a database can be made.
	Postgres string
	// Folder takes histories and logs.
	Folder string
	// Load is for how long Rate requests a second are made, by Clients at a time.
	Load          time.Duration
	Rate, Clients int
	// Every is how soon after the start of a process that was killed the next one is. Kills is how often each kind of
	// process must have been killed in a round at least.
	Every time.Duration
	Kills int
	// Drain is how long it may last, when the load is over, until less is on its way than ever before.
	Drain time.Duration
	// Environment is added to the workers'.
	Environment []string
}

// Long is the whole proof: for each broker a minute of load, half of it with each inbox.
func Long() Plan {
	return Plan{
		Load: 30 * time.Second, Rate: 60, Clients: 12, Every: 1500 * time.Millisecond, Kills: 3, Drain: 2 * time.Minute,
	}
}

// Short is the form for every change.
func Short() Plan {
	return Plan{
		Load: 10 * time.Second, Rate: 40, Clients: 8, Every: 500 * time.Millisecond, Kills: 2, Drain: 2 * time.Minute,
	}
}

// requests is how many the plan has in mind.
func (p Plan) requests() int { return int(p.Load.Seconds()) * p.Rate }
