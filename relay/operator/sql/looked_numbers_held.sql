-- Held events with numbers above {above} and up to {upto}, in every lane.
SELECT {columns}, 0 AS place
  FROM {schema}.outbox_lanes l
 CROSS JOIN LATERAL (
       SELECT h.lane, h.seq FROM {schema}.outbox_held h
        WHERE h.lane = l.lane AND h.seq > {above}::bigint AND h.seq <= {upto}::bigint OFFSET 0) held
 CROSS JOIN LATERAL (
       SELECT {columns} FROM {schema}.outbox_events e WHERE e.lane = held.lane AND e.seq = held.seq OFFSET 0) e
