-- Reads a page of events that meet a filter: $1 event types, null for all; $2 aggregate type, $3 aggregate id, $4
-- tenant, $5 namespace, each empty for all; $6 states, null for all; $7 a piece of the last error in lower case, empty
-- for all; $8 and $9 created not before and before; $10 and $11 published so, null for all; $12 and $13 the least and
-- most attempts; $14 how many to find. {looked} is the rows to look at, each with its place among them, {order} their
-- order, {payload} what is asked of payloads, {content} the columns that not every role may read.
-- A row that is not held has no row in outbox_held, so that is asked only where the state is 1. Times may be infinite
-- where somebody wrote them by hand.
SELECT e.place, e.id::text, e.seq, e.lane, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id,
       coalesce(e.tenant_id, ''), coalesce(h.kind, e.state), greatest(least(e.created_at, '9999-12-31'), '0001-01-01'),
       CASE WHEN isfinite(e.published_at) THEN e.published_at END, CASE WHEN isfinite(h.since) THEN h.since END,
       CASE WHEN h.due IS NOT NULL THEN greatest(least(h.due, '9999-12-31'), '0001-01-01') END,
       e.attempt_count, coalesce(e.last_error, ''), EXISTS (
           SELECT FROM (SELECT a.verb FROM {schema}.outbox_actions a WHERE a.event_id = e.id OFFSET 0) a
            WHERE a.verb = 'erase' OFFSET 0), {content}
  FROM ({looked}) e
  LEFT JOIN LATERAL (
       SELECT h.kind, h.since, h.due FROM {schema}.outbox_held h
        WHERE e.state = 1 AND h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
 WHERE ($1::text[] IS NULL OR e.event_type = ANY ($1::text[])) AND ($2::text = '' OR e.aggregate_type = $2::text)
   AND ($3::text = '' OR e.aggregate_id = $3::text) AND ($4::text = '' OR e.tenant_id = $4::text)
   AND ($5::text = '' OR e.namespace = $5::text)
   AND ($6::smallint[] IS NULL OR coalesce(h.kind, e.state) = ANY ($6::smallint[]))
   AND ($7::text = '' OR strpos(lower(e.last_error), $7::text) > 0)
   AND ($8::timestamptz IS NULL OR e.created_at >= $8::timestamptz)
   AND ($9::timestamptz IS NULL OR e.created_at < $9::timestamptz)
   AND ($10::timestamptz IS NULL OR e.published_at >= $10::timestamptz)
   AND ($11::timestamptz IS NULL OR e.published_at < $11::timestamptz)
   AND e.attempt_count BETWEEN $12::integer AND $13::integer {payload}
 ORDER BY {order} LIMIT (SELECT $14::integer)
