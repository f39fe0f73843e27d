-- How many events the aggregate $1 and $2 has, at most $3.
SELECT count(*) FROM (
    SELECT FROM {schema}.outbox_events e WHERE e.aggregate_type = $1::text AND e.aggregate_id = $2::text
     LIMIT (SELECT $3::integer)) e
