-- Lanes that nobody holds, relays that are alive, and what operators have paused.
SELECT (SELECT count(*) FROM {schema}.outbox_lanes l WHERE l.layout = 1
       AND (l.lease_until IS NULL OR l.lease_until < clock_timestamp())), (SELECT count(*) FROM {schema}.outbox_relays r
           WHERE r.alive_until >= clock_timestamp()),
       count(*) FILTER (WHERE p.scope = 'all'), count(*) FILTER (WHERE p.scope = 'topic'),
       count(*) FILTER (WHERE p.scope = 'type')
  FROM {schema}.outbox_pauses p
