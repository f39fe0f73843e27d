-- What an erasure would find of the events $1: for each its state, null where it is not in the table; whether it is
-- there, or a dead letter of it; whether none of its rows may still be published; whether it was erased before, and
-- whether a copy of it is still to be sent. As outbox_erase sees it, with the rights of a viewer: who may not read
-- payloads knows by their times what came after an erasure, where an id was used again. Where statistics are old the
-- planner would combine the index by event with one that has all erasures; OFFSET keeps it from that.
SELECT u.id::text, f.state, f.id IS NOT NULL OR d.is_there, coalesce(f.finished, d.is_there, false),
       EXISTS (SELECT FROM (SELECT a.verb, a.acted_at FROM {schema}.outbox_actions a
                             WHERE a.event_id = u.id OFFSET 0) a
                WHERE a.verb = 'erase' AND coalesce(a.acted_at >= f.newest, true)
                  AND NOT EXISTS (SELECT FROM (SELECT d.failed_at FROM {schema}.outbox_dlq d
                                                WHERE d.event_id = u.id OFFSET 0) d
                                   WHERE d.failed_at > a.acted_at OFFSET 0)
               OFFSET 0),
       EXISTS (SELECT FROM {schema}.outbox_requests r
                WHERE r.event_id = u.id AND r.delivered_at IS NULL AND r.canceled_at IS NULL AND r.failed_at IS NULL
               OFFSET 0)
  FROM (SELECT DISTINCT u.id FROM unnest($1::text[]::uuid[]) u(id)) u
  LEFT JOIN LATERAL (
       SELECT e.id, max(coalesce(h.kind, e.state)) AS state, max(e.created_at) AS newest,
              bool_and(coalesce(h.kind, e.state) BETWEEN 4 AND 7) AS finished
         FROM {schema}.outbox_events e
         LEFT JOIN LATERAL (
              SELECT h.kind FROM {schema}.outbox_held h
               WHERE e.state = 1 AND h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
        WHERE e.id = u.id GROUP BY e.id OFFSET 0) f ON true
 CROSS JOIN LATERAL (
       SELECT EXISTS (SELECT FROM {schema}.outbox_dlq d WHERE d.event_id = u.id OFFSET 0) AS is_there) d
