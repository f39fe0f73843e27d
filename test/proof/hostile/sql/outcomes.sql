-- What the tables say of every event. A dead letter holds exactly what would have been published.
SELECT e.id::text, e.seq, coalesce(h.kind, e.state), e.attempt_count, coalesce(e.last_error, ''),
       CASE WHEN isfinite(e.created_at) THEN to_char(e.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')
            ELSE '' END,
       h.kind IS NOT DISTINCT FROM 1 AND h.due > now() + interval '1 hour' AS waits,
       d.letters, coalesce(d.reason, ''), coalesce(d.detail, ''), coalesce(d.same, true)
  FROM {schema}.outbox_events e
  LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq
 CROSS JOIN LATERAL (
    SELECT count(*) AS letters, max(l.error_reason) AS reason, max(l.error_detail) AS detail,
           bool_and(l.payload_json::text = e.payload_json::text AND l.headers::text IS NOT DISTINCT FROM e.headers::text
                    AND (l.event_seq, l.namespace, l.event_type, l.aggregate_type, l.aggregate_id) = (e.seq,
                        e.namespace, e.event_type, e.aggregate_type, e.aggregate_id)
                    AND (l.tenant_id, l.dedupe_key, l.created_at) IS NOT DISTINCT
                        FROM (e.tenant_id, e.dedupe_key, e.created_at)) AS same
      FROM {schema}.outbox_dlq l WHERE l.event_id = e.id
) d
