-- Where every event stands: what its row says, and how it is held; 0 where outbox_held has nothing.
SELECT e.id, e.seq, e.state, coalesce(h.kind, 0::smallint), e.event_type, e.attempt_count, e.published_at IS NOT NULL
  FROM {schema}.outbox_events e
  LEFT JOIN {schema}.outbox_held h ON h.lane = e.lane AND h.seq = e.seq
 ORDER BY e.seq;
