package torture

import "context"

// The histories that whoever stages a run of their own writes, in the judge's words: what producers did, and
// what was done to the run, with its end.
const (
	ProducersFile = producersFile
	FaultsFile    = faultsFile
)

// Collect writes the other histories of a staged run: what arrived, what relays did, what the tables hold. It
// counts the settles that a relay takes for applied, and that no trigger saw: there must be none.
func (w *World) Collect(ctx context.Context, folder string) (unwitnessed int, err error) {
	c := &collector{world: w, operators: &operators{}, folder: folder}
	if err := c.collect(ctx); err != nil {
		return 0, err
	}
	return c.unwitnessed, nil
}

// Arrivals is how many messages have arrived at the broker.
func (w *World) Arrivals(ctx context.Context) (uint64, error) { return w.stage.arrivals(ctx) }
