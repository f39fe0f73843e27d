-- How many events are held so, $1, and how many dead letters there are where $2, each at most $3.
SELECT (SELECT count(*) FROM (
            SELECT FROM {schema}.outbox_lanes l CROSS JOIN unnest($1::smallint[]) k(kind) CROSS JOIN LATERAL (
                SELECT FROM {schema}.outbox_held h
                 WHERE h.lane = l.lane AND h.kind = k.kind
                 ORDER BY h.since, h.seq LIMIT (SELECT $3::integer)) h
             WHERE l.layout = 1 LIMIT (SELECT $3::integer)) held),
       (SELECT count(*) FROM (
            SELECT FROM {schema}.outbox_dlq d WHERE $2::boolean ORDER BY d.id DESC LIMIT (SELECT $3::integer)) letters)
