-- How a settle finds its events.
SELECT e.seq FROM unnest($1::smallint[], $2::bigint[]) l(lane, seq) CROSS JOIN LATERAL (
    SELECT r.seq FROM {schema}.outbox_events r WHERE r.lane = l.lane AND r.seq = l.seq OFFSET 0) e
