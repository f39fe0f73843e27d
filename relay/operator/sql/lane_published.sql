-- When an event of the lane $1 was last published, among its newest $2; null: none of them was.
SELECT max(e.published_at) FILTER (WHERE isfinite(e.published_at))
  FROM (SELECT e.published_at FROM {schema}.outbox_events e WHERE e.lane = $1::integer
         ORDER BY e.seq DESC LIMIT (SELECT $2::integer)) e
