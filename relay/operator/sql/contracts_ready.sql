-- Events that stand in lanes above a number: $1 the lanes, $2 the number of each, $3 how many of each lane, in their
-- order. Above a lane's floor these are ready or settled. {ready} asks of the ready ones for what costs more to read.
-- State: 0 ready.
SELECT n.lane, e.seq, e.state, e.id::text, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id,
       coalesce(e.tenant_id, ''), e.dedupe_key, e.headers, e.payload
  FROM unnest($1::smallint[], $2::bigint[]) n(lane, above) CROSS JOIN LATERAL (
       SELECT e.seq, e.state, e.id, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, e.tenant_id, {ready}
         FROM {schema}.outbox_events e
        WHERE e.lane = n.lane AND e.seq > n.above ORDER BY e.seq LIMIT (SELECT $3::integer)) e
