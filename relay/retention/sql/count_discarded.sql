-- $1 the cut-off. How many discarded events would go, by the conditions of the statement that deletes them.
-- States: 7 discarded.
SELECT count(*) FROM {schema}.outbox_events e
 WHERE e.state = 7 AND e.created_at < $1::timestamptz
   AND NOT EXISTS (
    SELECT FROM {schema}.outbox_actions a WHERE a.event_id = e.id AND a.verb = 'discard'
           AND a.acted_at >= $1::timestamptz OFFSET 0)
   AND NOT EXISTS (
    SELECT FROM {schema}.outbox_requests r
     WHERE r.event_id = e.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL OFFSET 0)
