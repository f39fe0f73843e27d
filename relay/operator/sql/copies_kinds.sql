-- Which topics and types the copies are of that an action ($1) has open, and with what error one of them was sent that
-- was, as far as the first $2 of them tell. A null topic is where the type goes.
SELECT r.topic, e.event_type, max(r.last_error)
  FROM (SELECT r.topic, r.event_id, r.last_error
          FROM {schema}.outbox_requests r
         WHERE r.action_id = $1::text::uuid
           AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL AND r.id > 0
         LIMIT (SELECT $2::integer)) r
  JOIN {schema}.outbox_events e ON e.id = r.event_id
 GROUP BY r.topic, e.event_type
 LIMIT (SELECT $2::integer)
