package check

import (
	"fmt"
	"maps"
	"slices"
)

// Floor is how much a run must have tested. The zero value asks for one committed event and a run that
// drained and ended.
type Floor struct {
	// Committed is the least number of committed events. Defaults to 1.
	Committed int
	// Faults is the least number of faults of each kind. Defaults to none.
	Faults map[FaultKind]int
	// Points are the failpoints that must have been hit. Defaults to none.
	Points []string
	// Duplicates is the least number of duplicates. A run that kills relays between publish and settle and
	// has none never hit that window. Defaults to 0.
	Duplicates int
	// OrderedAggregates is the least number of aggregate and topic pairs with two delivered versions: with
	// fewer there is no order to break. Defaults to 0.
	OrderedAggregates int
	// Undrained lets a run pass that stopped before its backlog was empty. Defaults to false.
	Undrained bool
}

// short returns a sentence for everything that was too little.
func (f Floor) short(v *Verdict, end *End) []string {
	var list []string
	least := func(what string, have, want int) {
		if have < want {
			list = append(list, fmt.Sprintf("too little was tested: %s is %d, at least %d is needed", what, have, want))
		}
	}
	least("committed", v.Count(Committed), max(f.Committed, 1))
	least("duplicates", v.Count(Duplicates), f.Duplicates)
	least("ordered_aggregates", v.Count(OrderedAggregates), f.OrderedAggregates)
	for _, kind := range slices.Sorted(maps.Keys(f.Faults)) {
		least("the number of faults of kind "+string(kind), v.Faults[kind], f.Faults[kind])
	}
	for _, point := range f.Points {
		least("hits of failpoint "+point, v.Points[point], 1)
	}
	switch {
	case end == nil:
		list = append(list, "the history has no end record: it was cut, or nobody looked at the final tables")
	case !end.Drained && !f.Undrained:
		list = append(list, "the run did not drain, so nobody knows whether what is left would ever have been delivered")
	}
	return list
}
