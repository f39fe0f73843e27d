-- $1 the limit. Retrying, parked and waiting events: how many, at most the limit each, and the age in seconds of the
-- oldest of those. Waiting ones have no index of their own, so at most so many held rows are looked at for them.
-- States: 1 retrying, 2 parked, 3 waiting, 4 dead and blocking.
WITH lanes AS MATERIALIZED (
    SELECT l.lane FROM {schema}.outbox_lanes l WHERE l.layout = 1
), retrying AS MATERIALIZED (
    SELECT e.created_at FROM lanes l CROSS JOIN LATERAL (
        SELECT e.created_at FROM {schema}.outbox_events e
         WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state = 1
         ORDER BY e.next_attempt_at, e.seq LIMIT (SELECT $1::bigint)) e
     LIMIT (SELECT $1::bigint)
), parked AS MATERIALIZED (
    SELECT e.created_at FROM lanes l CROSS JOIN LATERAL (
        SELECT e.created_at FROM {schema}.outbox_events e
         WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state = 2
         ORDER BY e.next_attempt_at, e.seq LIMIT (SELECT $1::bigint)) e
     LIMIT (SELECT $1::bigint)
), held AS MATERIALIZED (
    SELECT e.state, e.created_at FROM lanes l CROSS JOIN LATERAL (
        SELECT e.state, e.created_at FROM {schema}.outbox_events e
         WHERE {schema}.outbox_lane(e.namespace, e.aggregate_type, e.aggregate_id) = l.lane AND e.state IN (1, 2, 3, 4)
         ORDER BY e.namespace, e.aggregate_type, e.aggregate_id, e.event_type, e.seq LIMIT (SELECT $1::bigint)) e
     LIMIT (SELECT $1::bigint)
)
SELECT (SELECT count(*) FROM retrying),
       (SELECT extract(epoch FROM clock_timestamp() - min(created_at))::float8 FROM retrying
       WHERE isfinite(created_at)), (SELECT count(*) FROM parked),
       (SELECT extract(epoch FROM clock_timestamp() - min(created_at))::float8 FROM parked WHERE isfinite(created_at)),
       (SELECT count(*) FROM held WHERE state = 3),
       (SELECT extract(epoch FROM clock_timestamp() - min(created_at))::float8 FROM held WHERE state = 3
       AND isfinite(created_at))
