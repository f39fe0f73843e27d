-- How many copies of a job ($1) are not sent yet, at most $2. Whoever says id > 0 may use the index of what is open by
-- job.
SELECT count(*)
  FROM (SELECT FROM {schema}.outbox_requests r
         WHERE r.action_id = $1::text::uuid
           AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL AND r.id > 0
         LIMIT (SELECT $2::integer)) open
