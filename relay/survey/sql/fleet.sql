-- Lanes that nobody holds, relays that are alive, and what operators have paused. Who is alive is found once for each
-- relay, and not once for each lane.
WITH alive AS MATERIALIZED (
    SELECT r.id FROM {schema}.outbox_relays r CROSS JOIN LATERAL (
        SELECT b.until FROM {schema}.outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT (SELECT 1)) b
     WHERE r.ended_at IS NULL AND b.until >= clock_timestamp()
)
SELECT (SELECT count(*) FROM {schema}.outbox_lanes l
         WHERE l.layout = 1 AND NOT EXISTS (SELECT FROM alive a WHERE a.id = l.owner)), (SELECT count(*) FROM alive),
       count(*) FILTER (WHERE p.scope = 'all'), count(*) FILTER (WHERE p.scope = 'topic'),
       count(*) FILTER (WHERE p.scope = 'type')
  FROM {schema}.outbox_pauses p
