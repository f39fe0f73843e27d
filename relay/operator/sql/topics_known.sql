-- $1 the most. Which types go to which topic, by those relays that have not ended, and how many of these are alive.
SELECT k.topic, k.event_type, array_agg(DISTINCT r.name ORDER BY r.name), count(*) FILTER (WHERE r.alive)
  FROM (SELECT r.id, r.name, coalesce((
            SELECT b.until FROM {schema}.outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT (SELECT 1)
        ) >= clock_timestamp(), false) AS alive
          FROM {schema}.outbox_relays r WHERE r.ended_at IS NULL) r
  JOIN {schema}.outbox_known k ON k.relay = r.id
 GROUP BY k.topic, k.event_type ORDER BY k.topic, k.event_type LIMIT (SELECT $1::bigint)
