-- Which topics and types the copies are of that an action ($1) has open, as far as the first $2 of them tell. A null
-- topic is where the type goes.
SELECT DISTINCT r.topic, e.event_type
  FROM (SELECT r.topic, r.event_id
          FROM {schema}.outbox_requests r
         WHERE r.action_id = $1::text::uuid
           AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL AND r.id > 0
         LIMIT (SELECT $2::integer)) r
  JOIN {schema}.outbox_events e ON e.id = r.event_id
 LIMIT (SELECT $2::integer)
