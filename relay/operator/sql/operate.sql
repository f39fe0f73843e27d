-- One action of an operator: $1 event ids, $2 action id, $3 verb, $4 actor, $5 reason, $6 the states that it
-- starts from, $7 the state that it leads to. Answers what was found, what it was behind the lock, what was done, and
-- what this action did before, as rows of their own: PostgreSQL takes the CTEs for small and would join them row by
-- row. Done again by the same action it changes nothing but for followers that came meanwhile.
--
-- Whoever changes a held event locks its row in outbox_held first, in the order of (lane, seq), and then the event. A
-- settle does so as well, so that no two wait for each other. Hence all that shall be locked is found before anything
-- is. What an event has become meanwhile, its held row says; of one that is dead and held by nobody, its own row. Of
-- what operators start from, relays change only what is parked, and the caller sees to it that operators come one after
-- the other: so no event is locked here that a settle wants.
-- Keys go through unnest, for which the planner expects few rows: it looks into an index for each, and reads no table
-- through.
-- States: 1 retrying (of the event: held), 2 parked, 3 waiting, 4 dead and blocking, 5 dead.
WITH found AS MATERIALIZED (
    SELECT e.id, e.lane, e.seq, e.namespace, e.aggregate_type, e.aggregate_id, coalesce(h.kind, e.state) AS state,
           h.kind IS NOT NULL AS held
      FROM {schema}.outbox_events e
      LEFT JOIN LATERAL (
        SELECT h.kind FROM {schema}.outbox_held h WHERE h.lane = e.lane AND h.seq = e.seq OFFSET 0) h ON true
     WHERE e.id = ANY ($1::text[]::uuid[])
), earlier AS MATERIALIZED ( -- an action that has changed something is over
    SELECT a.event_id, a.verb FROM {schema}.outbox_actions a WHERE a.action_id = $2::text::uuid
), chosen AS MATERIALIZED (
    SELECT f.* FROM found f WHERE f.state = ANY ($6::smallint[]) AND NOT EXISTS (SELECT FROM earlier)
), ended AS MATERIALIZED ( -- whose block ends now, or was ended by this action just before
    SELECT f.*, f.state = 4 AS now FROM found f
     WHERE $7::smallint <> 1 AND CASE f.state
               WHEN 4 THEN (f.lane, f.seq) IN (SELECT c.lane, c.seq FROM chosen c)
               -- It ended a block if the event blocked when it died, and nobody had skipped it since.
               WHEN $7::smallint THEN f.id IN (SELECT x.event_id FROM earlier x)
                    AND EXISTS (SELECT FROM (SELECT d.id, d.blocking FROM {schema}.outbox_dlq d
                                              WHERE d.event_id = f.id ORDER BY d.id DESC LIMIT 1) AS last
                                 WHERE last.blocking AND NOT EXISTS (
                                    SELECT FROM {schema}.outbox_actions s
                                     WHERE s.event_id = f.id AND s.dlq_id = last.id AND s.verb = 'skip'
                                       AND s.action_id <> $2::text::uuid))
           END
), followers AS MATERIALIZED ( -- the first that waits behind it, of each type: the topic is the registry's to know
    SELECT first.*, head.seq AS head, head.now
      FROM ended head
     CROSS JOIN LATERAL (
        SELECT DISTINCT ON (w.event_type) w.lane, w.seq, w.namespace, w.aggregate_type, w.aggregate_id, w.event_type
          FROM {schema}.outbox_held w
         WHERE w.lane = head.lane AND w.namespace = head.namespace AND w.aggregate_type = head.aggregate_type
           AND w.aggregate_id = head.aggregate_id AND w.seq > head.seq
           AND w.kind + 0 = 3 -- with the bare column the planner may read all that wait in the lane
         ORDER BY w.event_type, w.seq) AS first
     -- One with another held event of its type before it would be due and could not go. OFFSET keeps this a look
     -- into the index instead of a join with all held events.
     WHERE NOT EXISTS (
        SELECT FROM {schema}.outbox_held b
         WHERE b.lane = first.lane AND b.namespace = first.namespace AND b.aggregate_type = first.aggregate_type
           AND b.aggregate_id = first.aggregate_id AND b.event_type = first.event_type AND b.seq < first.seq
           AND b.kind <> 3 AND (b.lane, b.seq) NOT IN (SELECT c.lane, c.seq FROM chosen c)
        OFFSET 0)
), keys AS MATERIALIZED (
    SELECT c.lane, c.seq, c.id FROM chosen c WHERE c.held
    UNION
    SELECT f.lane, f.seq, NULL FROM followers f
), locked AS MATERIALIZED ( -- as they are now; one without an id is a follower
    SELECT k.id, h.lane, h.seq, h.kind, h.namespace, h.aggregate_type, h.aggregate_id, h.event_type,
           k.id IS NOT NULL AND h.kind = ANY ($6::smallint[]) AS acts
      FROM unnest(ARRAY(SELECT k.lane FROM keys k), ARRAY(SELECT k.seq FROM keys k), ARRAY(SELECT k.id FROM keys k))
           AS k(lane, seq, id)
      JOIN {schema}.outbox_held h ON h.lane = k.lane AND h.seq = k.seq
     ORDER BY h.lane, h.seq FOR UPDATE OF h
), dead AS MATERIALIZED ( -- when all of locked is: a CTE is read as far as somebody asks, and a count asks for all
    SELECT e.id, e.lane, e.seq, e.state, e.state = 5 AND 5 = ANY ($6::smallint[]) AS acts
      FROM unnest(ARRAY(SELECT c.lane FROM chosen c WHERE NOT c.held AND (SELECT count(*) FROM locked) >= 0),
                  ARRAY(SELECT c.seq FROM chosen c WHERE NOT c.held)) AS k(lane, seq)
      JOIN {schema}.outbox_events e ON e.lane = k.lane AND e.seq = k.seq
     ORDER BY e.lane, e.seq FOR NO KEY UPDATE OF e
), gone AS MATERIALIZED ( -- a relay was faster: nothing to decide, so whoever is at it is not waited for
    SELECT c.lane, c.seq FROM chosen c
     WHERE c.held AND (c.lane, c.seq) NOT IN (SELECT l.lane, l.seq FROM locked l)
), became AS MATERIALIZED (
    SELECT e.id, e.state
      FROM unnest(ARRAY(SELECT g.lane FROM gone g), ARRAY(SELECT g.seq FROM gone g)) AS k(lane, seq)
      JOIN {schema}.outbox_events e ON e.lane = k.lane AND e.seq = k.seq
       FOR NO KEY UPDATE OF e SKIP LOCKED
), acted AS MATERIALIZED (
    SELECT l.id, l.lane, l.seq, true AS held FROM locked l WHERE l.acts
    UNION ALL
    SELECT d.id, d.lane, d.seq, false FROM dead d WHERE d.acts
), promoted AS MATERIALIZED ( -- CASE keeps it a look into a hash table
    SELECT l.lane, l.seq FROM locked l
     WHERE CASE WHEN l.id IS NULL AND l.kind = 3 THEN (l.lane, l.seq) IN (
            SELECT f.lane, f.seq FROM followers f
             WHERE NOT f.now OR (f.lane, f.head) IN (SELECT a.lane, a.seq FROM acted a WHERE a.held)) END
), due AS MATERIALIZED ( -- a relay looks for retries that are due
    SELECT a.lane, a.seq FROM acted a WHERE a.held AND $7::smallint = 1
    UNION ALL
    SELECT p.lane, p.seq FROM promoted p
), retried AS (
    UPDATE {schema}.outbox_held h
       SET kind = 1, due = clock_timestamp(), since = clock_timestamp(), version = DEFAULT
      FROM unnest(ARRAY(SELECT d.lane FROM due d), ARRAY(SELECT d.seq FROM due d)) AS k(lane, seq)
     WHERE h.lane = k.lane AND h.seq = k.seq
), let_go AS (
    DELETE FROM {schema}.outbox_held h
     USING unnest(ARRAY(SELECT a.lane FROM acted a WHERE a.held), ARRAY(SELECT a.seq FROM acted a WHERE a.held))
           AS k(lane, seq)
     WHERE h.lane = k.lane AND h.seq = k.seq AND $7::smallint <> 1
), changed AS ( -- a release changes nothing of the event itself
    UPDATE {schema}.outbox_events e
       SET state = $7::smallint, attempt_count = CASE $3::text WHEN 'redrive' THEN 0 ELSE e.attempt_count END
      FROM unnest(ARRAY(SELECT a.lane FROM acted a), ARRAY(SELECT a.seq FROM acted a),
                  ARRAY(SELECT a.held FROM acted a)) AS k(lane, seq, held)
     WHERE e.lane = k.lane AND e.seq = k.seq AND $3::text <> 'release'
    RETURNING e.lane, e.seq, e.namespace, e.event_type, e.aggregate_type, e.aggregate_id, k.held
), held_again AS (
    INSERT INTO {schema}.outbox_held (lane, seq, kind, due, namespace, event_type, aggregate_type, aggregate_id)
    SELECT c.lane, c.seq, 1, clock_timestamp(), c.namespace, c.event_type, c.aggregate_type, c.aggregate_id
      FROM changed c WHERE NOT c.held AND $7::smallint = 1
), logged AS (
    INSERT INTO {schema}.outbox_actions (action_id, verb, event_id, dlq_id, actor, reason)
    SELECT DISTINCT $2::text::uuid, $3::text, a.id,
           CASE $3::text WHEN 'release' THEN NULL
                ELSE (SELECT max(d.id) FROM {schema}.outbox_dlq d WHERE d.event_id = a.id) END,
           $4::text, $5::text
      FROM acted a
)
SELECT 'found' AS what, f.id::text, f.state, '' AS verb FROM found f
UNION ALL
SELECT 'locked', l.id::text, l.kind, '' FROM locked l WHERE l.id IS NOT NULL
UNION ALL
SELECT 'locked', d.id::text, d.state, '' FROM dead d
UNION ALL
SELECT 'locked', b.id::text, b.state, '' FROM became b
UNION ALL
SELECT 'done', a.id::text, NULL, '' FROM acted a
UNION ALL
SELECT 'before', e.event_id::text, NULL, e.verb FROM earlier e
