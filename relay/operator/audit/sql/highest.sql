-- The highest number in use: of an event, or in what retention deleted.
SELECT greatest(coalesce(max((SELECT e.seq FROM {schema}.outbox_events e WHERE e.lane = l.lane
                               ORDER BY e.seq DESC LIMIT (SELECT 1))), 0),
                coalesce((SELECT max(p.last_seq) FROM (SELECT p.last_seq FROM {schema}.outbox_pruned p
                           ORDER BY p.first_seq DESC LIMIT (SELECT 1)) p), 0))
  FROM {schema}.outbox_lanes l
