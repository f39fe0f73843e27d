-- Deletes dedupe keys: $1 where to begin, $2 the cut-off, $3 how many to look at; answers as for dead letters, where a
-- place is a created_at, in microseconds since 1970. A key whose event is still in the table stays, whatever its state:
-- without the key an emit that is tried again would put a second event beside the first. One that a producer has just
-- met again is locked by it: it is passed by, so that no emit waits for us while we wait for it.
WITH old AS MATERIALIZED (
    SELECT k.ctid AS place, k.event_id, k.created_at FROM {schema}.outbox_dedupe k
     WHERE k.created_at >= 'epoch'::timestamptz + $1::bigint * interval '1 microsecond'
       AND k.created_at < $2::timestamptz
     ORDER BY k.created_at LIMIT (SELECT $3::integer)
), free AS MATERIALIZED (
    SELECT k.ctid AS place FROM {schema}.outbox_dedupe k
     WHERE k.ctid = ANY (ARRAY(
        SELECT o.place FROM old o
         WHERE NOT EXISTS (SELECT FROM {schema}.outbox_events e WHERE e.id = o.event_id OFFSET 0)))
       FOR UPDATE SKIP LOCKED
), gone AS (
    DELETE FROM {schema}.outbox_dedupe k WHERE k.ctid = ANY (ARRAY(SELECT f.place FROM free f)) RETURNING 1
)
SELECT (SELECT count(*) FROM old), (SELECT count(*) FROM gone),
       coalesce((SELECT (extract(epoch FROM max(o.created_at)) * 1000000)::bigint FROM old o), 0)
