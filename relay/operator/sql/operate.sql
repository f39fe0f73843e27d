-- One action of an operator: $1 event ids, $2 action id, $3 verb, $4 actor, $5 reason, $6 the states that it
-- starts from, $7 the state that it leads to. Answers what was found, what was done, and what this action
-- did before, as rows of their own: PostgreSQL takes the CTEs for small and would join them row by row.
-- Done again by the same action it changes nothing but for followers that came meanwhile.
-- States: 1 retrying, 2 parked, 3 waiting, 4 dead and blocking.
WITH asked AS MATERIALIZED ( -- locked in one order, so that two operators do not wait for each other
    SELECT e.id, e.seq, e.state, e.namespace, e.aggregate_type, e.aggregate_id
      FROM {schema}.outbox_events e WHERE e.id = ANY ($1::text[]::uuid[]) ORDER BY e.seq FOR NO KEY UPDATE
), earlier AS MATERIALIZED ( -- an action that has changed something is over
    SELECT a.event_id, a.verb FROM {schema}.outbox_actions a WHERE a.action_id = $2::text::uuid
), chosen AS MATERIALIZED (
    SELECT a.* FROM asked a WHERE a.state = ANY ($6::smallint[]) AND NOT EXISTS (SELECT FROM earlier)
), acted AS (
    UPDATE {schema}.outbox_events e
       SET state = $7::smallint,
           next_attempt_at = CASE $7::smallint WHEN 1 THEN clock_timestamp() ELSE e.next_attempt_at END,
           attempt_count = CASE $3::text WHEN 'redrive' THEN 0 ELSE e.attempt_count END
     WHERE e.id = ANY (ARRAY(SELECT c.id FROM chosen c)) AND e.state = ANY ($6::smallint[])
    RETURNING e.id
), logged AS (
    INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor, reason)
    SELECT $2::text::uuid, $3::text, a.id,
           CASE $3::text WHEN 'release' THEN NULL
                ELSE (SELECT max(d.id) FROM {schema}.outbox_dlq d WHERE d.event_id = a.id) END,
           $4::text, $5::text
      FROM acted a
), freed AS ( -- the first that waited behind a head, of each type: the topic is the registry's to know
    SELECT first.*
      FROM asked head
     CROSS JOIN LATERAL (
        SELECT DISTINCT ON (w.event_type) w.id, w.seq, w.namespace, w.aggregate_type, w.aggregate_id, w.event_type
          FROM {schema}.outbox_events w
         WHERE {schema}.outbox_lane(w.namespace, w.aggregate_type, w.aggregate_id)
               = {schema}.outbox_lane(head.namespace, head.aggregate_type, head.aggregate_id)
           AND w.namespace = head.namespace AND w.aggregate_type = head.aggregate_type
           AND w.aggregate_id = head.aggregate_id
           AND w.seq > head.seq AND w.state IN (1, 2, 3, 4) AND w.state = 3
         ORDER BY w.event_type, w.seq) AS first
     WHERE $7::smallint <> 1 AND CASE head.state
               WHEN 4 THEN head.id IN (SELECT c.id FROM chosen c)
               -- By this action, just before. It ended a block if the event blocked when it died, and nobody had
               -- skipped it since.
               WHEN $7::smallint THEN head.id IN (SELECT x.event_id FROM earlier x)
                    AND EXISTS (SELECT FROM (SELECT d.id, d.blocking FROM {schema}.outbox_dlq d
                                              WHERE d.event_id = head.id ORDER BY d.id DESC LIMIT 1) AS last
                                 WHERE last.blocking AND NOT EXISTS (
                                    SELECT FROM {schema}.outbox_actions s
                                     WHERE s.event_id = head.id AND s.dlq_id = last.id AND s.verb = 'skip'
                                       AND s.action_id <> $2::text::uuid))
           END
), promoted AS ( -- a relay looks for retries that are due, so that is what they become
    UPDATE {schema}.outbox_events e SET state = 1, next_attempt_at = clock_timestamp()
     WHERE e.state = 3 AND e.id = ANY (ARRAY(
        SELECT f.id FROM freed f
         -- One with another held event of its type before it would be due and could not go. OFFSET keeps
         -- this a look into the index instead of a join with all held events.
         WHERE NOT EXISTS (
            SELECT FROM {schema}.outbox_events b
             WHERE {schema}.outbox_lane(b.namespace, b.aggregate_type, b.aggregate_id)
                   = {schema}.outbox_lane(f.namespace, f.aggregate_type, f.aggregate_id)
               AND b.namespace = f.namespace AND b.aggregate_type = f.aggregate_type AND b.aggregate_id = f.aggregate_id
               AND b.seq < f.seq AND b.state IN (1, 2, 3, 4) AND b.state <> 3 AND b.event_type = f.event_type
               AND b.id NOT IN (SELECT c.id FROM chosen c)
            OFFSET 0)))
)
SELECT 'found' AS what, a.id::text, a.state, '' AS verb FROM asked a
UNION ALL
SELECT 'done', a.id::text, NULL, '' FROM acted a
UNION ALL
SELECT 'before', e.event_id::text, NULL, e.verb FROM earlier e
