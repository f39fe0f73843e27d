-- Which of some events are there already: $1 namespaces, $2 event types, $3 tenants, $4 dedupe keys, one of each per
-- event. A look into the index for each, and nothing is written. Answers their places.
SELECT g.place::integer - 1
  FROM unnest($1::text[], $2::text[], $3::text[], $4::text[]) WITH ORDINALITY
       AS g(namespace, event_type, tenant_id, dedupe_key, place)
 WHERE EXISTS (
       SELECT FROM {schema}.outbox_dedupe d
        WHERE d.namespace = g.namespace AND d.event_type = g.event_type AND d.tenant_id = g.tenant_id
          AND d.dedupe_key = g.dedupe_key OFFSET 0)
