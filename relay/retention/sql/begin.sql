-- $1 the kind, $2 who begins, $3 for how long, in milliseconds. Answers nothing while somebody else is at it. A time
-- further ahead than anybody takes it for was written by a clock that was wrong. The last answer is up to when events
-- have been deleted: null, never.
-- Whoever comes second does not wait for the row: having waited, it would lock the row and hold up the one at work.
WITH free AS MATERIALIZED (
    SELECT r.kind FROM {schema}.outbox_retention r
     WHERE r.kind = $1::text
       AND (r.worker IS NULL OR r.worker = $2::text::uuid
            OR r.work_until NOT BETWEEN clock_timestamp() AND clock_timestamp() + $3::bigint * interval '1 millisecond')
       FOR NO KEY UPDATE SKIP LOCKED)
UPDATE {schema}.outbox_retention r
   SET worker = $2::text::uuid, work_until = clock_timestamp() + $3::bigint * interval '1 millisecond'
  FROM free WHERE r.kind = free.kind
RETURNING clock_timestamp(), r.cut_off, r.ran_at,
          (SELECT p.cut_off FROM {schema}.outbox_retention p WHERE p.kind = 'published')
