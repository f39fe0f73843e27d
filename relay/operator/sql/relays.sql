-- $1 whether those that have ended are wanted, $2 the most. The relays, with their newest beats: those that are there
-- first, then the newest.
SELECT r.id::text, r.name, r.version, r.started_at, r.ended_at, b.at, b.until,
       CASE WHEN r.ended_at IS NOT NULL THEN 'ended'
            WHEN coalesce(b.until, r.started_at) >= clock_timestamp() THEN 'alive' ELSE 'dead' END,
       r.lanes,
       (SELECT count(*) FROM {schema}.outbox_known k WHERE k.relay = r.id),
       ARRAY(SELECT t.topic FROM {schema}.outbox_topics t WHERE t.relay = r.id AND t.paused AND NOT t.by_operator
              ORDER BY t.topic LIMIT (SELECT 100))
  FROM {schema}.outbox_relays r LEFT JOIN LATERAL (
    SELECT b.at, b.until FROM {schema}.outbox_beats b WHERE b.relay = r.id ORDER BY b.number DESC LIMIT (SELECT 1)) b
    ON true
 WHERE $1::boolean OR r.ended_at IS NULL
 ORDER BY r.ended_at IS NOT NULL, r.started_at DESC, r.id LIMIT (SELECT $2::bigint)
