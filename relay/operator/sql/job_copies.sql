-- How the copies of a job ($1) fare: how many are not sent yet, failed and were canceled, at most $2 of the first and
-- of the others together. Whoever says id > 0 may use the index of what is open by job.
SELECT (SELECT count(*) FROM (
            SELECT FROM {schema}.outbox_requests r
             WHERE r.action_id = $1::text::uuid
               AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL AND r.id > 0
             LIMIT (SELECT $2::integer)) open), count(u.failed_at), count(u.canceled_at)
  FROM (SELECT r.failed_at, r.canceled_at
          FROM {schema}.outbox_requests r
         WHERE r.action_id = $1::text::uuid AND (r.failed_at IS NOT NULL OR r.canceled_at IS NOT NULL)
         LIMIT (SELECT $2::integer)) u
