-- What is known of the numbers $1: when retention deleted last in the range that has it, if it has one; up to when
-- events were published that retention deletes; whether an event has the number, and whether it was ever drawn.
SELECT u.seq,
       (SELECT CASE WHEN p.last_seq >= u.seq THEN p.changed_at END FROM {schema}.outbox_pruned p
         WHERE p.first_seq <= u.seq ORDER BY p.first_seq DESC LIMIT (SELECT 1)),
       (SELECT r.cut_off FROM {schema}.outbox_retention r WHERE r.kind = 'published'),
       EXISTS (SELECT FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
                   SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane AND e.seq = u.seq OFFSET 0) e),
       u.seq <= (SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END
                   FROM {schema}.outbox_events_seq_seq s)
  FROM (SELECT DISTINCT a.seq FROM unnest($1::bigint[]) a(seq)) u
