-- Every row of outbox_held, with the event that it is about, and whether its names are another's.
SELECT e.id, h.lane, h.seq, h.kind, h.due IS NOT NULL,
       (h.namespace, h.event_type, h.aggregate_type, h.aggregate_id)
           IS DISTINCT FROM (e.namespace, e.event_type, e.aggregate_type, e.aggregate_id)
  FROM {schema}.outbox_held h
  LEFT JOIN {schema}.outbox_events e ON e.lane = h.lane AND e.seq = h.seq
 ORDER BY h.lane, h.seq;
