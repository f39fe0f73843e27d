-- Reads jobs, the newest first: $1 one of them, null for all; $2 only those that have not ended, or did so in the
-- last day, failed ones in the last week; $3 only what somebody can work on; $4 and $5 the time and id before
-- which the page begins; $6 how many.
SELECT j.id::text, j.verb, j.filter, coalesce(j.topic, ''), coalesce(j.rate, 0), j.most, j.expected, j.actor, j.reason,
       j.session_role::text, j.created_at, j.last_seq, j.last_at, j.state, j.position, j.done, j.passed,
       greatest(extract(epoch FROM j.next_at - clock_timestamp()), 0)::double precision,
       j.worker::text, coalesce(j.worker_name, ''),
       coalesce(extract(epoch FROM j.work_until - clock_timestamp()), 0)::double precision, coalesce(j.error, ''),
       j.changed_at, j.ended_at
  FROM {schema}.outbox_jobs j
 WHERE ($1::text IS NULL OR j.id = $1::text::uuid) AND (
       NOT $2::boolean OR j.ended_at IS NULL OR j.ended_at > clock_timestamp() - interval '1 day'
       OR j.state = 'failed' AND j.ended_at > clock_timestamp() - interval '7 days')
   AND (NOT $3::boolean OR j.ended_at IS NULL AND j.state = 'running')
   AND (j.created_at, j.id) < ($4::timestamptz, $5::text::uuid)
 ORDER BY j.created_at DESC, j.id DESC LIMIT (SELECT $6::integer)
