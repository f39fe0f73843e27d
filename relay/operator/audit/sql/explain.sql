-- What is known of the numbers $1: whether retention deleted in a range that has it, whether an event has it, and
-- whether it was ever drawn.
SELECT u.seq,
       coalesce((SELECT p.last_seq >= u.seq FROM {schema}.outbox_pruned p WHERE p.first_seq <= u.seq
                  ORDER BY p.first_seq DESC LIMIT (SELECT 1)), false),
       EXISTS (SELECT FROM {schema}.outbox_lanes l CROSS JOIN LATERAL (
                   SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane AND e.seq = u.seq OFFSET 0) e),
       u.seq <= (SELECT CASE WHEN s.is_called THEN s.last_value ELSE s.last_value - 1 END
                   FROM {schema}.outbox_events_seq_seq s)
  FROM (SELECT DISTINCT a.seq FROM unnest($1::bigint[]) a(seq)) u
