package torture

import (
	"context"
	"encoding/json"

	"github.com/posthaste-dev/posthaste/internal/check"
	"github.com/posthaste-dev/posthaste/outbox"
)

type changeRow struct {
	At            int64
	Event         outbox.ID
	Before, After int16
}

type letterRow struct {
	Event    outbox.ID
	Reason   string
	Attempts int
	Blocking bool
	Payload  string
	Headers  *string
	At       int64
}

type actionRow struct {
	Event outbox.ID
	Verb  string
	Actor string
}

type requestRow struct {
	Request       int64
	Event, Action outbox.ID
	Topic, End    string
}

const requestsSQL = `SELECT id, event_id, action_id, coalesce(topic, ''),
	CASE WHEN delivered_at IS NOT NULL THEN 'delivered' WHEN canceled_at IS NOT NULL THEN 'canceled'
		WHEN failed_at IS NOT NULL THEN 'failed' ELSE '' END
	FROM {schema}.outbox_requests ORDER BY id`

type leaseRow struct {
	At                 int64
	Lane               int16
	OldName, OldToken  string
	Name, Token        string
	Until              int64
	Taken, Given, Kept bool
}

// tables are the final tables and the changes that led to them.
func (c *collector) tables(ctx context.Context) (check.History, error) {
	var h check.History
	c.changes = map[outbox.ID][]change{}
	err := each(ctx, c, "SELECT "+c.clock.ours("at")+", event_id, before, after FROM {schema}.torture_changes ORDER BY n",
		func(r changeRow) {
			c.changes[r.Event] = append(c.changes[r.Event], change{at: r.At, after: check.State(r.After)})
			h = append(h,
				check.Record{Change: &check.Change{ID: r.Event, From: check.State(r.Before), To: check.State(r.After)}})
		})
	if err != nil {
		return nil, err
	}
	events, err := Events(ctx, c.env.Pool, c.env.Run)
	if err != nil {
		return nil, err
	}
	h = append(h, events...)
	query := "SELECT event_id, error_reason, attempts, blocking, payload_json::text, headers::text, " +
		c.clock.ours("failed_at") + " FROM {schema}.outbox_dlq ORDER BY id"
	err = each(ctx, c, query, func(r letterRow) {
		h = append(h, check.Record{Letter: &check.Letter{
			ID: r.Event, Reason: r.Reason, Attempts: r.Attempts, Blocking: r.Blocking, Payload: check.SumOf([]byte(r.Payload)),
			Headers: headersOf(r.Headers),
			Next:    c.next(c.lastFailure(r.Event, r.At)),
		}})
	})
	if err != nil {
		return nil, err
	}
	query = "SELECT event_id, verb, actor FROM {schema}.outbox_actions WHERE target IS NULL ORDER BY id"
	err = each(ctx, c, query, func(r actionRow) {
		h = append(h,
			check.Record{
				Action: &check.Action{ID: r.Event, Verb: check.Verb(r.Verb), Actor: r.Actor, Next: c.operators.next[r.Event]},
			})
	})
	if err != nil {
		return nil, err
	}
	err = each(ctx, c, requestsSQL, func(r requestRow) {
		h = append(h, check.Record{Request: &check.Request{
			Request: r.Request, ID: r.Event, Action: r.Action, Topic: r.Topic, End: check.RequestEnd(r.End),
			Canceled: c.operators.canceled[r.Action],
		}})
	})
	return h, err
}

func headersOf(text *string) check.Sum {
	if text == nil {
		return check.Sum{}
	}
	var headers map[string]string
	if err := json.Unmarshal([]byte(*text), &headers); err != nil {
		return check.SumOf([]byte(*text)) // which is nobody's
	}
	return sumOfHeaders(headers)
}

// leases are the tenures of all lanes as the database saw them, under the names of the relays' processes.
func (c *collector) leases(ctx context.Context) (check.History, error) {
	var h check.History
	query := `SELECT ` + c.clock.ours("l.at") + `, l.lane, coalesce(o.name, l.old_owner::text, ''), ` +
		`coalesce(l.old_token::text, ''),
		coalesce(r.name, l.owner::text, ''), coalesce(l.token::text, ''), coalesce(` + c.clock.ours("l.lease_until") + `, 0),
		l.token IS NOT NULL AND l.token IS DISTINCT FROM l.old_token, l.token IS NULL AND l.old_token IS NOT NULL,
		l.token = l.old_token IS TRUE
		FROM {schema}.torture_leases l LEFT JOIN {schema}.torture_relays o ON o.id = l.old_owner
		LEFT JOIN {schema}.torture_relays r ON r.id = l.owner ORDER BY l.n`
	err := each(ctx, c, query, func(r leaseRow) {
		s := check.Step{Relay: r.Name, Token: r.Token, Lane: int(r.Lane), At: r.At, Until: r.Until}
		switch {
		case r.Taken:
			s.Do = check.Acquire
		case r.Given:
			s = check.Step{Do: check.Release, Relay: r.OldName, Token: r.OldToken, Lane: int(r.Lane), At: r.At}
		case r.Kept:
			s.Do = check.Renew
		}
		h = append(h, check.Record{Step: &s})
	})
	return h, err
}
