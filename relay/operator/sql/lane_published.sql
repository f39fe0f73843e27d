-- When an event of the lane $1 was last published, among $4 at each of these places: below the event $2, on both sides
-- of the first that is ready, $3, where a relay works, and the newest of the lane; null: none of them was.
SELECT max(e.published_at) FILTER (WHERE isfinite(e.published_at))
  FROM ((SELECT e.published_at FROM {schema}.outbox_events e WHERE e.lane = $1::integer AND e.seq < $2::bigint
          ORDER BY e.seq DESC LIMIT (SELECT $4::integer))
        UNION ALL
        (SELECT e.published_at FROM {schema}.outbox_events e WHERE e.lane = $1::integer AND e.seq < $3::bigint
          ORDER BY e.seq DESC LIMIT (SELECT $4::integer))
        UNION ALL
        (SELECT e.published_at FROM {schema}.outbox_events e WHERE e.lane = $1::integer AND e.seq > $3::bigint
          ORDER BY e.seq LIMIT (SELECT $4::integer))
        UNION ALL
        (SELECT e.published_at FROM {schema}.outbox_events e WHERE e.lane = $1::integer
          ORDER BY e.seq DESC LIMIT (SELECT $4::integer))) e
