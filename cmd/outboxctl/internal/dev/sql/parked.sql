-- The types that wait for a relay that knows them: some 10,000 events of them are looked at.
SELECT DISTINCT h.event_type, h.aggregate_type
  FROM (SELECT h.event_type, h.aggregate_type FROM {schema}.outbox_held h WHERE h.kind = 2 LIMIT 10000) h
 ORDER BY 1, 2
