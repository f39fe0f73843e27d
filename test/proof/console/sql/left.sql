-- A dead letter of an event that retention has deleted, after somebody had discarded it.
WITH letter AS (
    INSERT INTO {schema}.outbox_dlq (event_seq, event_id, created_at, failed_at, attempts, blocking, namespace,
        tenant_id, event_type, aggregate_type, aggregate_id, topic, error_reason, error_detail, payload_json, headers)
    VALUES (1, '01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e', now() - interval '40 days', now() - interval '39 days', 5, false,
        'default', 'lyon', 'email_requested', 'customer', 'c-002', 'emails', 'rejected',
        'at ''/to'': must be an address',
        '{"version":1,"eventId":"01997c1e-8f2a-7c3d-9b1e-2f3a4b5c6d7e","data":{"to":"c-002 at example.net"}}',
        '{"traceparent":"00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}')
    RETURNING id, event_id
), discarded AS (
    INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor, reason, acted_at)
    SELECT gen_random_uuid(), 'discard', event_id, id, 'ines', 'she has called', now() - interval '38 days' FROM letter
)
UPDATE {schema}.outbox_retention SET cut_off = now() - interval '30 days', ran_at = now(), deleted = 1
 WHERE kind = 'published'
