-- Events that are held in lanes above a number: $1 the lanes, $2 the number of each, $3 how many of each lane, in their
-- order. {held} asks for what costs more to read of those that go on by themselves. Kind: 4 dead and blocking.
SELECT h.lane, h.seq, h.kind, e.id::text, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id,
       coalesce(e.tenant_id, ''), e.dedupe_key, e.headers, e.payload
  FROM unnest($1::smallint[], $2::bigint[]) n(lane, above) CROSS JOIN LATERAL (
       SELECT h.lane, h.seq, h.kind FROM {schema}.outbox_held h
        WHERE h.lane = n.lane AND h.seq > n.above ORDER BY h.seq LIMIT (SELECT $3::integer)) h
 CROSS JOIN LATERAL (
       SELECT e.id, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, e.tenant_id, {held}
         FROM {schema}.outbox_events e
        WHERE e.lane = h.lane AND e.seq = h.seq OFFSET 0) e
