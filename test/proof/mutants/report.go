package mutants

import (
	"fmt"
	"time"

	"github.com/posthaste-dev/posthaste/internal/figures"
)

// least is how many mutants must have been made for the proof to be one.
const least = 142

// Report is what became of all mutants.
type Report struct {
	Findings []Finding
	Proofs   int
	// Broken are the proofs that do not pass without a mutant, and why: what they find means nothing.
	Broken map[string]string
	Took   time.Duration
	// One tells that a single mutant was asked for, so that there need not be many.
	One bool
}

// addClean takes in the runs without a mutant: what was wrong with each, or nothing.
func (r *Report) addClean(results map[string]string) {
	r.Proofs, r.Broken = len(results), map[string]string{}
	for name, problem := range results {
		if problem != "" {
			r.Broken[name] = problem
		}
	}
}

// Problems lists in sentences what is not as it must be.
func (r *Report) Problems() []string {
	var problems []string
	for name, problem := range r.Broken {
		problems = append(problems, fmt.Sprintf("without a mutant, %s does not pass: %s", name, problem))
	}
	for _, f := range r.Findings {
		if f.Missed != "" {
			problems = append(problems, fmt.Sprintf("%s was not caught by %s: %s", f.Mutant, f.Proof, f.Missed))
		}
	}
	if len(r.Findings) < least && !r.One || len(r.Findings) == 0 {
		problems = append(problems, fmt.Sprintf("too little was tested: %d mutants, at least %d are needed",
			len(r.Findings), least))
	}
	return problems
}

// Line returns the figures in one line.
func (r *Report) Line() string {
	caught, slowest := 0, time.Duration(0)
	for _, f := range r.Findings {
		if f.Missed == "" {
			caught++
		}
		slowest = max(slowest, f.Took)
	}
	line := figures.New("proof-mutants")
	line.Addf("mutants", "%d", len(r.Findings))
	line.Addf("caught", "%d", caught)
	line.Addf("missed", "%d", len(r.Findings)-caught)
	line.Addf("proofs", "%d", r.Proofs)
	line.Addf("clean", "%d", r.Proofs-len(r.Broken))
	line.Addf("seconds", "%.0f", r.Took.Seconds())
	line.Addf("slowest_ms", "%d", slowest.Milliseconds())
	line.Addf("ok", "%t", len(r.Problems()) == 0)
	return line.String()
}
