-- Reads dead letters by their numbers, $1, newest first, each with what last resolved it. {content} is the columns that
-- not every operator may read: where they are not asked for they must not be named, or PostgreSQL denies all of it.
SELECT d.id, d.event_id::text, d.event_seq, d.namespace, d.event_type, d.aggregate_type, d.aggregate_id,
       coalesce(d.tenant_id, ''), coalesce(d.topic, ''), d.error_reason, d.error_detail, d.attempts, d.blocking,
       d.created_at, d.failed_at, coalesce(r.verb, ''), coalesce(r.actor, ''), r.acted_at,
       EXISTS (
           SELECT FROM {schema}.outbox_actions a WHERE a.event_id = d.event_id AND a.verb = 'erase' OFFSET 0), {content}
  FROM {schema}.outbox_dlq d
  LEFT JOIN LATERAL (
       SELECT a.verb, a.actor, a.acted_at FROM {schema}.outbox_actions a
        WHERE a.dlq_id = d.id AND a.verb IN ('redrive', 'discard', 'reissue')
        ORDER BY a.acted_at DESC, a.id DESC LIMIT 1) r ON true
 WHERE d.id = ANY ($1::bigint[])
 ORDER BY d.failed_at DESC, d.id DESC
