-- $1 the limit, $2 and $3 event types and how many attempts each has, $4 how many the others have. Dead events: how
-- many, at most the limit of each kind; the age of the oldest in seconds; how many of them have had all their attempts;
-- how many aggregates one blocks. Those that block are held. Of the others no index tells, but each has a dead
-- letter: so many of the newest letters are looked at.
-- States: 4 dead and blocking, 5 dead.
WITH dead AS MATERIALIZED (
    SELECT true AS blocks, e.created_at, e.attempt_count, h.event_type, h.namespace, h.aggregate_type, h.aggregate_id
      FROM (SELECT h.* FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
                SELECT h.lane, h.seq, h.event_type, h.namespace, h.aggregate_type, h.aggregate_id
                  FROM {schema}.outbox_held h
                 WHERE h.lane = l.lane AND h.kind = 4 ORDER BY h.since, h.seq LIMIT (SELECT $1::bigint)) h
             WHERE l.layout = 1 LIMIT (SELECT $1::bigint)) h
     CROSS JOIN LATERAL (
        SELECT e.created_at, e.attempt_count FROM {schema}.outbox_events e
         WHERE e.lane = h.lane AND e.seq = h.seq OFFSET 0) e
    UNION ALL
    SELECT false, e.created_at, e.attempt_count, e.event_type, e.namespace, e.aggregate_type, e.aggregate_id
      FROM (SELECT DISTINCT d.event_id FROM ( -- one that died twice has two
                SELECT d.event_id FROM {schema}.outbox_dlq d ORDER BY d.id DESC LIMIT (SELECT $1::bigint)) d) d
     CROSS JOIN LATERAL (
        SELECT e.created_at, e.attempt_count, e.event_type, e.namespace, e.aggregate_type, e.aggregate_id
          FROM {schema}.outbox_events e WHERE e.id = d.event_id AND e.state = 5 OFFSET 0) e
)
SELECT count(*),
       extract(epoch FROM clock_timestamp() - min(d.created_at) FILTER (WHERE isfinite(d.created_at)))::float8,
       count(*) FILTER (WHERE d.attempt_count >= coalesce(t.attempts, $4::integer)),
       count(DISTINCT (d.namespace, d.aggregate_type, d.aggregate_id)) FILTER (WHERE d.blocks)
  FROM dead d LEFT JOIN unnest($2::text[], $3::integer[]) t(event_type, attempts) ON t.event_type = d.event_type
