-- Events with numbers above {above} and up to {upto}, in every lane.
SELECT {columns}, 0 AS place
  FROM {schema}.outbox_lanes l
 CROSS JOIN LATERAL (
       SELECT {columns} FROM {schema}.outbox_events e
        WHERE e.lane = l.lane AND e.seq > {above}::bigint AND e.seq <= {upto}::bigint OFFSET 0) e
