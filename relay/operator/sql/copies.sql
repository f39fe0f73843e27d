-- How the copies of an action ($1) fare, at most $2 of them, the newest events first: how many are not sent yet, sent,
-- failed and canceled.
SELECT count(*) FILTER (WHERE r.delivered_at IS NULL AND r.failed_at IS NULL AND r.canceled_at IS NULL),
       count(r.delivered_at), count(r.failed_at), count(r.canceled_at)
  FROM (SELECT r.delivered_at, r.failed_at, r.canceled_at
          FROM {schema}.outbox_requests r
         WHERE r.action_id = $1::text::uuid
         ORDER BY r.event_id DESC LIMIT (SELECT $2::integer)) r
