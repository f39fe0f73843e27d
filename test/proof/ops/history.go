package ops

import (
	"context"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/internal/torture"
	"github.com/posthaste-dev/posthaste/outbox"
)

type written struct {
	ID        outbox.ID
	Seq       int64
	Type      string
	Aggregate string
	Payload   string
}

type request struct {
	Request       int64
	Event, Action outbox.ID
	Topic, End    string
}

// check tells the checker what was written, what came and what the tables have. Letters and what operators did are not
// among it: to the checker a dead event that did not block excuses whoever passes it, and nobody may pass one here.
// Numbers are versions: those of an aggregate were written one after the other.
func (r *run) check(ctx context.Context) error {
	rows, err := read[written](ctx, r.db, `SELECT id, seq, event_type, namespace || '/' || aggregate_type || '/' ||
		aggregate_id, payload_json::text FROM public.outbox_events`)
	if err != nil {
		return err
	}
	known := map[outbox.ID]*written{}
	for i := range rows {
		known[rows[i].ID] = &rows[i]
	}
	live, _ := r.load.emitted()
	checker := check.New()
	for _, list := range [][]outbox.ID{r.seeds, live, r.load.late} {
		for _, id := range list {
			event := check.Event{ID: id, Topic: "nowhere"} // it is gone from the table
			if row := known[id]; row != nil {
				event = check.Event{
					ID: id, Type: row.Type, Topic: topicOf(row.Type), Aggregate: row.Aggregate, Version: uint64(row.Seq),
					Payload: check.SumOf([]byte(row.Payload)),
				}
			}
			checker.Add(check.Record{Tx: &check.Tx{Key: id.String(), Events: []check.Event{event}, Outcome: check.OK}})
		}
	}
	for _, a := range r.broker.arrivals() {
		checker.Add(check.Record{Delivery: &a.Delivery})
	}
	events, err := torture.Events(ctx, r.db.pool, outbox.DefaultSchema)
	if err != nil {
		return err
	}
	for _, record := range events {
		checker.Add(record)
	}
	requests, err := read[request](ctx, r.db, `SELECT id, event_id, action_id, coalesce(topic, ''),
		CASE WHEN delivered_at IS NOT NULL THEN 'delivered' WHEN canceled_at IS NOT NULL THEN 'canceled'
			WHEN failed_at IS NOT NULL THEN 'failed' ELSE '' END FROM public.outbox_requests`)
	if err != nil {
		return err
	}
	for _, q := range requests {
		checker.Add(check.Record{Request: &check.Request{
			Request: q.Request, ID: q.Event, Action: q.Action, Topic: q.Topic, End: check.RequestEnd(q.End),
		}})
	}
	checker.Add(check.Record{End: &check.End{Drained: true, Held: true}})
	r.report.Live, r.report.Mismarked = len(live), r.broker.mismarked()
	r.report.Verdict = checker.Verdict(check.Floor{
		Committed: len(r.seeds) + len(live), OrderedAggregates: r.plan.Aggregates,
	})
	return nil
}

func topicOf(eventType string) string {
	if eventType == moved().Contract().Type {
		return liveTopic
	}
	return ordersTopic
}
