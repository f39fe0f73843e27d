-- $1 the limit, $2 and $3 event types and how many attempts each has, $4 how many the others have. Dead events: how
-- many, at most the limit of each kind; the age of the oldest in seconds; how many of them have had all their attempts;
-- how many aggregates wait behind one.
-- States: 4 dead and blocking, 5 dead.
WITH dead AS MATERIALIZED (
    (SELECT e.state, e.created_at, e.attempt_count, e.event_type, e.namespace, e.aggregate_type, e.aggregate_id
       FROM {schema}.outbox_events e WHERE e.state = 4 ORDER BY e.seq LIMIT (SELECT $1::bigint))
    UNION ALL
    (SELECT e.state, e.created_at, e.attempt_count, e.event_type, e.namespace, e.aggregate_type, e.aggregate_id
       FROM {schema}.outbox_events e WHERE e.state = 5 ORDER BY e.seq LIMIT (SELECT $1::bigint))
)
SELECT count(*),
       extract(epoch FROM clock_timestamp() - min(d.created_at) FILTER (WHERE isfinite(d.created_at)))::float8,
       count(*) FILTER (WHERE d.attempt_count >= coalesce(t.attempts, $4::integer)),
       count(DISTINCT (d.namespace, d.aggregate_type, d.aggregate_id)) FILTER (WHERE d.state = 4)
  FROM dead d LEFT JOIN unnest($2::text[], $3::integer[]) t(event_type, attempts) ON t.event_type = d.event_type
