-- Publishes of an event, $1, that failed: the first 5 and the last 15 are kept. By their numbers, with the relay's name
-- if it is still known.
SELECT a.number, a.at, coalesce(r.name, ''), a.class, a.topic, a.error
  FROM {schema}.outbox_attempts a LEFT JOIN {schema}.outbox_relays r ON r.id = a.relay
 WHERE a.event_id = $1::text::uuid ORDER BY a.number
