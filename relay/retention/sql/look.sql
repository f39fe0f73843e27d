-- $1 the kind. What is remembered of its last run, and up to when events have been deleted, as in the beginning of a
-- run.
SELECT clock_timestamp(), r.cut_off, r.ran_at,
       (SELECT p.cut_off FROM {schema}.outbox_retention p WHERE p.kind = 'published')
  FROM {schema}.outbox_retention r WHERE r.kind = $1::text
