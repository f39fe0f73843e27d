-- Deletes discarded events: $1 where to begin, $2 the cut-off, $3 how many to look at; answers as for published
-- ones, where a place is a seq. When it was discarded stands in the log of actions, which goes with the dead letter;
-- without it the event's own age counts.
-- States: 7 discarded.
WITH old AS MATERIALIZED (
    SELECT e.id, e.seq, e.created_at FROM {schema}.outbox_events e
     WHERE e.state = 7 AND e.seq >= $1::bigint
     ORDER BY e.seq LIMIT (SELECT $3::integer)
), gone AS ( -- state + 0: with the bare column the planner may read all discarded events instead of these
    DELETE FROM {schema}.outbox_events e
     WHERE e.state + 0 = 7 AND e.id = ANY (ARRAY(
        SELECT o.id FROM old o
         WHERE o.created_at < $2::timestamptz
           AND NOT EXISTS (
            SELECT FROM {schema}.outbox_actions a WHERE a.event_id = o.id AND a.verb = 'discard'
                   AND a.acted_at >= $2::timestamptz OFFSET 0)
           AND NOT EXISTS (
            SELECT FROM {schema}.outbox_requests r
             WHERE r.event_id = o.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL
               AND r.failed_at IS NULL OFFSET 0)))
    RETURNING 1
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM gone), coalesce((SELECT max(o.seq) + 1 FROM old o), 0)
