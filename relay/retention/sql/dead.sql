-- Deletes dead letters that were resolved before the cut-off, the last time if there were several: $1 where to
-- begin, $2 the cut-off, $3 how many to look at. Answers how many it looked at, how many went, and where to go on: a
-- place is an id. Without the place every batch would walk over all that the ones before it have deleted, while
-- somebody's snapshot holds them. Their actions and closed requests go along.
WITH old AS MATERIALIZED (
    SELECT d.id, d.failed_at FROM {schema}.outbox_dlq d
     WHERE d.id >= $1::bigint
     ORDER BY d.id LIMIT (SELECT $3::integer)
), gone AS (
    DELETE FROM {schema}.outbox_dlq d
     WHERE d.id = ANY (ARRAY(
        SELECT o.id FROM old o
         WHERE o.failed_at < $2::timestamptz
           AND (SELECT max(a.acted_at) FROM {schema}.outbox_actions a
                 WHERE a.dlq_id = o.id AND a.verb IN ('redrive', 'discard', 'reissue')) < $2::timestamptz
           AND NOT EXISTS ( -- one that shall be delivered again
            SELECT FROM {schema}.outbox_actions a JOIN {schema}.outbox_requests r ON r.action_id = a.action_id
                   AND r.event_id = a.event_id
             WHERE a.dlq_id = o.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL
               AND r.failed_at IS NULL OFFSET 0)))
    RETURNING 1
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM gone), coalesce((SELECT max(o.id) + 1 FROM old o), 0)
