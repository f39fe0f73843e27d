-- Finds events of which only dead letters are left, among the $2 letters with the least numbers above $1: $3 ids of
-- events, $4 event types, null for all; $5 aggregate type, $6 aggregate id, $7 tenant, $8 namespace, $9 topic, empty
-- for all; $10 and $11 created not before and before, null for all. {payload} is what is asked of payloads, {content}
-- the column for it, which not every role may read. Answers the number of the last letter, and the events.
WITH letter AS MATERIALIZED (
    (SELECT d.id, d.event_id, d.created_at, d.namespace, d.tenant_id, d.event_type, d.aggregate_type, d.aggregate_id,
            d.topic{content}
       FROM {schema}.outbox_dlq d
      WHERE $3::text[] IS NULL AND d.id > $1::bigint ORDER BY d.id LIMIT (SELECT $2::integer))
    UNION ALL
    (SELECT d.* FROM (SELECT DISTINCT u.id FROM unnest($3::text[]::uuid[]) u(id)) event
      CROSS JOIN LATERAL ( -- a look into the index for each, which OFFSET keeps it
        SELECT d.id, d.event_id, d.created_at, d.namespace, d.tenant_id, d.event_type, d.aggregate_type,
               d.aggregate_id, d.topic{content}
          FROM {schema}.outbox_dlq d WHERE d.event_id = event.id AND d.id > $1::bigint OFFSET 0) d
      ORDER BY d.id LIMIT (SELECT $2::integer))
)
SELECT (SELECT max(d.id) FROM letter d), ARRAY(
    SELECT d.event_id::text FROM letter d
     WHERE ($4::text[] IS NULL OR d.event_type = ANY ($4::text[])) AND ($5::text = '' OR d.aggregate_type = $5::text)
       AND ($6::text = '' OR d.aggregate_id = $6::text) AND ($7::text = '' OR d.tenant_id = $7::text)
       AND ($8::text = '' OR d.namespace = $8::text) AND ($9::text = '' OR d.topic = $9::text)
       AND ($10::timestamptz IS NULL OR d.created_at >= $10::timestamptz)
       AND ($11::timestamptz IS NULL OR d.created_at < $11::timestamptz) {payload}
       AND NOT EXISTS (SELECT FROM {schema}.outbox_events e WHERE e.id = d.event_id OFFSET 0)
     ORDER BY d.id)
