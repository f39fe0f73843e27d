package main

import "context"

// A bound: how near the goals are when the table has no trigger and one index, its key, which a relay reads by.
const (
	emitLaneOnly     = "emit, lane index only, no trigger"
	emitManyLaneOnly = "emit of 100 events, lane index only, no trigger"

	laneOnlySchema = "lane_only"
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
	drops := []string{dropTrigger}
	for _, index := range indexes {
		drops = append(drops, "DROP INDEX {schema}."+index)
	}
	return r.copyOutbox(ctx, laneOnlySchema, drops)
}
