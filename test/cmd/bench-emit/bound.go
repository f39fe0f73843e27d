package main

import "context"

// No candidates but a bound: how near the goals are when the table has no rules and one index, the one
// that a relay reads.
const (
	emitLaneOnly     = "emit, lane index only, no check"
	emitManyLaneOnly = "emit of 100 events, lane index only, no check"

	laneOnlySchema = "lane_only"
	laneIndex      = "outbox_events_ready"
)

func (d *drivers) bounds() map[string]transaction {
	return map[string]transaction{
		emitLaneOnly:     d.business(emitInto(laneOnlySchema)),
		emitManyLaneOnly: d.hundred(emitAllInto(laneOnlySchema)),
	}
}

// installBound makes the outbox that the bounds write to.
func (r *run) installBound(ctx context.Context) error {
	indexes, err := r.names(ctx, "list_indexes", outboxSchema+".outbox_events")
	if err != nil {
		return err
	}
	drops := []string{dropTrigger, dropCheck}
	for _, index := range indexes {
		if index != laneIndex {
			drops = append(drops, "DROP INDEX {schema}."+index)
		}
	}
	return r.copyOutbox(ctx, laneOnlySchema, drops)
}
