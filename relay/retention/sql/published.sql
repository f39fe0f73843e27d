-- Deletes published events: $1 where to begin, $2 the cut-off, $3 how many to look at. Answers how many were looked
-- at, how many went, and where to go on: a place is a published_at, in microseconds since 1970. Without the place
-- every batch would walk over all that the ones before it have deleted, while somebody's snapshot holds them.
-- States: 6 published.
WITH old AS MATERIALIZED (
    SELECT e.id, e.published_at FROM {schema}.outbox_events e
     WHERE e.published_at >= 'epoch'::timestamptz + $1::bigint * interval '1 microsecond'
       AND e.published_at < $2::timestamptz
     ORDER BY e.published_at LIMIT (SELECT $3::integer)
), gone AS ( -- an array of ids and not a join: joined, the planner hashes the whole table
    DELETE FROM {schema}.outbox_events e
     WHERE e.state = 6 AND e.id = ANY (ARRAY(
        SELECT o.id FROM old o
         WHERE NOT EXISTS ( -- one that shall be delivered again
            SELECT FROM {schema}.outbox_requests r
             WHERE r.event_id = o.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL
               AND r.failed_at IS NULL OFFSET 0)))
    RETURNING 1
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM gone),
       coalesce((SELECT (extract(epoch FROM max(o.published_at)) * 1000000)::bigint FROM old o), 0)
