-- What operators have paused, limited, done to one event each, and have jobs do to many.
WITH texts AS (
    SELECT t, n::integer AS n FROM jsonb_array_elements($1::jsonb) WITH ORDINALITY v(t, n)
), pauses AS (
    INSERT INTO {schema}.outbox_pauses (scope, name, actor, reason)
    SELECT CASE n % 2 WHEN 0 THEN 'topic' ELSE 'type' END, t->>'pause_name', t->>'pause_actor', t->>'pause_reason'
      FROM texts
), limits AS (
    INSERT INTO {schema}.outbox_limits (topic, rate, actor, reason)
    SELECT t->>'limit_topic', 10, t->>'limit_actor', t->>'limit_reason' FROM texts
), jobs AS (
    INSERT INTO {schema}.outbox_jobs (id, verb, filter, topic, most, expected, actor, reason, last_seq, state,
        worker, work_until, worker_name, error, ended_at)
    SELECT (t->>'job_id')::uuid, 'redeliver', t->>'job_filter', t->>'job_topic', 100, 10, t->>'job_actor',
           t->>'job_reason', 1000000, CASE n % 3 WHEN 0 THEN 'failed' WHEN 1 THEN 'running' ELSE 'done' END,
           (t->>'relay_id')::uuid, now() + interval '1 day', t->>'job_worker', t->>'job_error',
            CASE WHEN n % 3 <> 1 THEN now() END
      FROM texts
), actions AS (
    INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor, reason, target)
    SELECT (t->>'job_id')::uuid, CASE n % 2 WHEN 0 THEN 'skip' ELSE 'redeliver' END, (t->>'id')::uuid, NULL,
           t->>'action_actor', t->>'action_reason', t->>'action_target'
      FROM texts
    RETURNING action_id, event_id
)
INSERT INTO {schema}.outbox_requests (action_id, event_id, lane, event_seq, topic, attempts, last_error)
SELECT a.action_id, a.event_id, 1, 1, t->>'request_topic', 1, t->>'request_error'
  FROM actions a JOIN texts ON (t->>'id')::uuid = a.event_id
