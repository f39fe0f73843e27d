-- Which types of events are among the newest $1, with which aggregate types, how many, and when the last and the first
-- was emitted; at most $2 rows. The ids have the order of time.
SELECT e.event_type, e.aggregate_type, count(*), max(e.created_at) FILTER (WHERE isfinite(e.created_at)),
       min(e.created_at) FILTER (WHERE isfinite(e.created_at))
  FROM (SELECT e.event_type, e.aggregate_type, e.created_at
          FROM {schema}.outbox_events e ORDER BY e.id DESC LIMIT (SELECT $1::integer)) e
 GROUP BY e.event_type, e.aggregate_type ORDER BY count(*) DESC, e.event_type LIMIT (SELECT $2::integer)
