-- Whether a request is open, of whatever lane. Each lane is asked through the index of what is open: of all together
-- PostgreSQL believes that it meets an open one soon, and reads all that ever were.
SELECT EXISTS (
    SELECT FROM {schema}.outbox_lanes l
     CROSS JOIN LATERAL (
        SELECT FROM {schema}.outbox_requests r
         WHERE r.lane = l.lane AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL
         ORDER BY r.event_seq, r.id LIMIT (SELECT 1)) r)
