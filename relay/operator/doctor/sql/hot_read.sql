-- How a relay reads what is ready, without the payloads: then everybody may have it planned who may look.
SELECT e.seq FROM unnest($1::smallint[], $2::bigint[]) l(lane, bound) CROSS JOIN LATERAL (
    SELECT o.seq FROM (
        SELECT r.seq, r.state FROM {schema}.outbox_events r
         WHERE r.lane = l.lane AND r.seq > l.bound ORDER BY r.seq LIMIT (SELECT 9223372036854775807)) o
     WHERE o.state = 0 LIMIT 500) e
