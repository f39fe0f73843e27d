package bench

import (
	"context"
	"fmt"
	"time"
)

// A Block is one turn of one subject.
type Block struct {
	Subject  string
	Round    int // from 0
	Position int // in the round, from 0
	Length   time.Duration
}

// A Subject is something to be measured, in turns with others.
type Subject struct {
	Name string
	// Measure runs the subject for one block.
	Measure func(context.Context, Block) (Sample, error)
}

// An Interleaver gives subjects turns of equal length, in rounds. Every round is a palindrome (A B B A
// for two), so that a drift that is steady over a round falls on all subjects alike, and every round
// begins with another subject, so that none always comes first.
type Interleaver struct {
	// Rounds is how often each subject gets its two turns.
	Rounds int
	// Length is how long a turn lasts.
	Length time.Duration
	// BeforeRound, when set, brings the server into the same state for every round.
	BeforeRound func(context.Context) error
	// Done, when set, is told of every block.
	Done func(Sample)
}

// Blocks is how many turns Run takes with this many subjects.
func (i Interleaver) Blocks(subjects int) int { return 2 * subjects * i.Rounds }

// Run gives all turns and returns what they measured, in the order in which they were taken.
func (i Interleaver) Run(ctx context.Context, subjects []Subject) ([]Sample, error) {
	samples := make([]Sample, 0, i.Blocks(len(subjects)))
	for round := range i.Rounds {
		if i.BeforeRound != nil {
			if err := i.BeforeRound(ctx); err != nil {
				return nil, fmt.Errorf("bench: before round %d: %w", round, err)
			}
		}
		for position, at := range Turns(len(subjects), round) {
			block := Block{Subject: subjects[at].Name, Round: round, Position: position, Length: i.Length}
			sample, err := subjects[at].Measure(ctx, block)
			if err != nil {
				return nil, fmt.Errorf("bench: %s, round %d: %w", block.Subject, round, err)
			}
			sample.Block = block
			samples = append(samples, sample)
			if i.Done != nil {
				i.Done(sample)
			}
		}
	}
	return samples, nil
}

// Turns is the order of a round: the subjects, begun at another one each round, and then the same
// backwards.
func Turns(subjects, round int) []int {
	turns := make([]int, 2*subjects)
	for i := range subjects {
		at := (round + i) % subjects
		turns[i], turns[len(turns)-1-i] = at, at
	}
	return turns
}
