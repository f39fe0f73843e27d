-- $1 the cut-off. How many dead letters would go, by the conditions of the statement that deletes them.
SELECT count(*) FROM {schema}.outbox_dlq d
 WHERE d.failed_at < $1::timestamptz
   AND (SELECT max(a.acted_at) FROM {schema}.outbox_actions a
         WHERE a.dlq_id = d.id AND a.verb IN ('redrive', 'discard', 'reissue')) < $1::timestamptz
   AND NOT EXISTS (
    SELECT FROM {schema}.outbox_actions a JOIN {schema}.outbox_requests r ON r.action_id = a.action_id
           AND r.event_id = a.event_id
     WHERE a.dlq_id = d.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL OFFSET 0)
