package pubsub

import (
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
	"github.com/posthaste-dev/posthaste/test/bench/measure"
)

// leastOfGoal is the part of the rate that the round trip allows which must be reached.
const leastOfGoal = 0.9

// Block is what was measured at a stretch.
type Block struct {
	Rate   float64 // events in a second
	AtOnce int     // requests that the server had at the same time
}

// Report is the outcome of a run.
type Report struct {
	Plan            Plan
	Bare, Published []Block
	Took            time.Duration
}

// goal is the rate that the round trip allows.
func (p *Plan) goal() float64 { return float64(p.InFlight) / p.RoundTrip.Seconds() }

// median is the rate of the middle block.
func median(blocks []Block) float64 {
	if len(blocks) == 0 {
		return 0
	}
	var rates []float64
	for _, block := range blocks {
		rates = append(rates, block.Rate)
	}
	slices.Sort(rates)
	return rates[len(rates)/2]
}

// atOnce is the most of all blocks.
func atOnce(blocks []Block) (most int) {
	for _, block := range blocks {
		most = max(most, block.AtOnce)
	}
	return most
}

// Problems lists the musts that were missed.
func (r *Report) Problems() (problems []string) {
	if len(r.Published) != r.Plan.Blocks || len(r.Bare) != r.Plan.Blocks || r.Plan.Blocks == 0 {
		return []string{"too little was tested"}
	}
	if most := atOnce(r.Published); most < r.Plan.InFlight {
		problems = append(problems, fmt.Sprintf("%d requests were under way at the same time, and the relay had %d events "+
			"for them", most, r.Plan.InFlight))
	}
	if reached := median(r.Published) / r.Plan.goal(); r.Plan.Timed && reached < leastOfGoal {
		problems = append(problems, fmt.Sprintf("%.0f events in a second are %.2f of what the round trip allows, at least "+
			"%.2f", median(r.Published), reached, leastOfGoal))
	}
	return problems
}

// Print writes the table, the musts that were missed, and the line of figures.
func (r *Report) Print(to io.Writer) error {
	table := bench.NewTable("block", "bare requests", "publisher", "ratio", "under way")
	for i := range min(len(r.Bare), len(r.Published)) {
		table.Add(fmt.Sprint(i+1), fmt.Sprintf("%.0f/s", r.Bare[i].Rate), fmt.Sprintf("%.0f/s", r.Published[i].Rate),
			fmt.Sprintf("%.3f", r.Published[i].Rate/r.Bare[i].Rate), fmt.Sprint(r.Published[i].AtOnce))
	}
	title := fmt.Sprintf("One topic of Pub/Sub, %d aggregates, a round trip of %s", r.Plan.InFlight, r.Plan.RoundTrip)
	if err := table.Print(to, title); err != nil {
		return err
	}
	problems := r.Problems()
	for _, problem := range problems {
		if _, err := fmt.Fprintln(to, "missed:", problem); err != nil {
			return fmt.Errorf("print: %w", err)
		}
	}
	line := figures.New("bench-pubsub")
	line.Addf("in_flight", "%d", r.Plan.InFlight)
	line.Addf("under_way", "%d", atOnce(r.Published))
	line.Addf("rate", "%.0f", median(r.Published))
	line.Addf("of_goal", "%.3f", median(r.Published)/r.Plan.goal())
	line.Addf("of_bare", "%.3f", median(r.Published)/median(r.Bare))
	line.Addf("seconds", "%.0f", r.Took.Seconds())
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintln(to, line); err != nil {
		return fmt.Errorf("print: %w", err)
	}
	return nil
}
