package bench

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"
)

// A Single is a subject of an [Alternation]: one client, with connections of its own.
type Single struct {
	Name        string
	Transaction func(context.Context, *Client) error
	// Servers, when set, lists the processes that serve this subject and no other.
	Servers func(context.Context) ([]int, error)
}

// An Alternation gives subjects turns of a few transactions each, with never more than one under way. It
// is the [Interleaver] for one client: whatever the machine does for some milliseconds, it does to all
// subjects. The CPU time of the client cannot be told apart and is not measured.
type Alternation struct {
	// Burst is how many transactions a turn has. With one, every transaction finds the processor's caches
	// full of the other subjects' work. Defaults to 1.
	Burst int

	// Rounds is how many samples each subject gets.
	Rounds int
	// Length is how long a round lasts, for all subjects together; longer when they have not had AtLeast
	// transactions each by then.
	Length time.Duration
	// AtLeast is the least number of transactions of a sample. Defaults to 1.
	AtLeast int
	// Done, when set, is told of every sample.
	Done func(Sample)
}

// Run gives all turns and returns a sample of every subject for every round.
func (a Alternation) Run(ctx context.Context, subjects []Single) ([]Sample, error) {
	var samples []Sample
	for round := range a.Rounds {
		measured, err := a.round(ctx, subjects, round)
		if err != nil {
			return nil, err
		}
		samples = append(samples, measured...)
		if a.Done != nil {
			for _, sample := range measured {
				a.Done(sample)
			}
		}
	}
	return samples, nil
}

func (a Alternation) round(ctx context.Context, subjects []Single, round int) ([]Sample, error) {
	samples := make([]Sample, len(subjects))
	clients := make([]*Client, len(subjects))
	servers := make([][]int, len(subjects))
	for i, s := range subjects {
		samples[i] = Sample{Block: Block{Subject: s.Name, Round: round, Position: i, Length: a.Length}, Clients: 1}
		clients[i] = &Client{Rand: rand.New(rand.NewPCG(uint64(round), 0))}
		var err error
		if s.Servers == nil {
			continue
		}
		if servers[i], err = s.Servers(ctx); err != nil {
			return nil, err
		}
		before, err := CPUOf(servers[i])
		if err != nil {
			return nil, err
		}
		samples[i].ServerCPU = -before
	}
	turns := Turns(len(subjects), round)
	for began := time.Now(); time.Since(began) < a.Length || samples[0].Transactions < a.AtLeast; {
		for _, at := range turns {
			for range max(a.Burst, 1) {
				if err := addTransaction(ctx, &samples[at], subjects[at], clients[at]); err != nil {
					return nil, err
				}
			}
		}
	}
	for i := range samples {
		slices.Sort(samples[i].Latencies)
		after, err := CPUOf(servers[i])
		if err != nil {
			return nil, err
		}
		samples[i].ServerCPU += after
	}
	return samples, nil
}

// addTransaction runs one transaction and adds it to the sample. Elapsed is the time of the subject's own
// turns.
func addTransaction(ctx context.Context, to *Sample, subject Single, client *Client) error {
	began := time.Now()
	if err := subject.Transaction(ctx, client); err != nil {
		return fmt.Errorf("bench: %s: %w", subject.Name, err)
	}
	took := time.Since(began)
	to.Latencies = append(to.Latencies, took)
	to.Transactions++
	to.Elapsed += took
	return nil
}
