-- Events that have a dead letter, with numbers above {above} and up to {upto}. The last letter's topic and reason are
-- {topic} and {reason}, empty for all; it is none that came after {last_at}. OFFSET keeps the planner at the index by
-- number: nearly all letters came before that moment.
SELECT {columns}, 0 AS place
  FROM (SELECT d.id, d.event_id, d.event_seq, d.topic, d.error_reason, d.failed_at FROM {schema}.outbox_dlq d
         WHERE d.event_seq > {above}::bigint AND d.event_seq <= {upto}::bigint OFFSET 0) d
 CROSS JOIN LATERAL (
       SELECT {columns} FROM {schema}.outbox_events e WHERE e.id = d.event_id AND e.seq = d.event_seq OFFSET 0) e
 WHERE d.failed_at <= {last_at}::timestamptz
   AND ({topic}::text = '' OR d.topic = {topic}::text) AND ({reason}::text = '' OR d.error_reason = {reason}::text)
   AND NOT EXISTS (SELECT FROM {schema}.outbox_dlq n WHERE n.event_id = d.event_id AND n.id > d.id OFFSET 0)
