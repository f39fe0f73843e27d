package leaks

import (
	"fmt"
	"io"

	"github.com/posthaste-dev/posthaste/internal/figures"
)

// Report is what was searched and found.
type Report struct {
	plan   Plan
	has    features
	Ledger *Ledger
	// Canaries is how many there were, and Missing those that were not even where they belong.
	Canaries int
	Missing  []string
	// Faults is how often something was done to the servers.
	Faults int
	// Events were written. LastErrors, Letters, Actions and TopicErrors are rows that say why something failed, or what
	// was done about it.
	Events, LastErrors, Letters, Actions, TopicErrors int
	// Stored is what the columns hold that are the events themselves.
	Stored string
	// Broken is what else was wrong.
	Broken   []string
	Seconds  float64
	commands int
}

// floors are how many places, and how many bytes, must have been searched of each kind.
func (r *Report) floors() map[Kind][2]int {
	floors := map[Kind][2]int{
		Log: {10, 100_000 * r.plan.Rounds}, HTTP: {15, 10_000}, Column: {40, 5_000}, Command: {50, 20_000},
	}
	if r.has.metrics {
		floors[Metrics] = [2]int{2, 10_000}
	}
	if r.has.tracing {
		floors[Traces] = [2]int{1, 10_000}
	}
	return floors
}

// letters are how many dead letters there must be at least.
func (r *Report) letters() int { return 30 * r.plan.Rounds }

// Problems are what was found and what was tested too little, a sentence each.
func (r *Report) Problems() []string {
	list := append([]string(nil), r.Broken...)
	for _, hit := range r.Ledger.Hits() {
		list = append(list, "a leak: "+hit.String())
	}
	for _, name := range r.Missing {
		list = append(list, fmt.Sprintf("too little was tested: the %s is not even where it belongs", name))
	}
	least := func(what string, have, want int) {
		if have < want {
			list = append(list, fmt.Sprintf("too little was tested: %s is %d, at least %d is needed", what, have, want))
		}
	}
	for _, kind := range Kinds() {
		floor := r.floors()[kind]
		least("the number of places of kind "+string(kind), r.Ledger.Locations(kind), floor[0])
		least("the number of bytes of kind "+string(kind), r.Ledger.Bytes(kind), floor[1])
	}
	least("the number of canaries", r.Canaries, 20)
	least("the number of blows", r.Faults, 6*r.plan.Rounds)
	least("the number of rows with last_error", r.LastErrors, 1)
	least("the number of dead letters with a detail", r.Letters, r.letters())
	least("the number of actions", r.Actions, 10)
	least("the number of looks at errors of topics", r.TopicErrors, 1)
	return list
}

// Print writes the problems and the last line. It tells whether there were none.
func (r *Report) Print(to io.Writer) (ok bool, err error) {
	problems := r.Problems()
	for _, problem := range problems {
		_, _ = fmt.Fprintln(to, "BROKEN:", problem) // the last line tells
	}
	line := figures.New("proof-leaks")
	places, size := 0, 0
	line.Addf("canaries", "%d", r.Canaries)
	line.Addf("events", "%d", r.Events)
	line.Addf("blows", "%d", r.Faults)
	for _, kind := range Kinds() {
		line.Addf(string(kind)+"_places", "%d", r.Ledger.Locations(kind))
		line.Addf(string(kind)+"_bytes", "%d", r.Ledger.Bytes(kind))
		places, size = places+r.Ledger.Locations(kind), size+r.Ledger.Bytes(kind)
	}
	line.Addf("places", "%d", places)
	line.Addf("bytes", "%d", size)
	line.Addf("last_errors", "%d", r.LastErrors)
	line.Addf("dead_letters", "%d", r.Letters)
	line.Addf("actions", "%d", r.Actions)
	line.Addf("hits", "%d", len(r.Ledger.Hits()))
	line.Addf("seconds", "%.0f", r.Seconds)
	line.Addf("ok", "%t", len(problems) == 0)
	if _, err := fmt.Fprintln(to, line); err != nil {
		return false, fmt.Errorf("leaks: print: %w", err)
	}
	return len(problems) == 0, nil
}
